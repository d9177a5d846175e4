/* SPDX-License-Identifier: MIT */
/*
 * Plain shared memory that clients were given. Its pages are charged to whichever cgroup touched
 * them first, often the guard's, as long as anybody has the memfd. The kernel does not say who has
 * one. But its content can be given back, whoever has it: when its session has released it, or has
 * ended. What a client writes there afterwards is charged to the client.
 */
#ifndef GUARD_KEPT_SHM_H
#define GUARD_KEPT_SHM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct kept_shm - those that a session has not released
 * @fds: by the connection of its session and its number
 */
struct kept_shm {
    GHashTable *fds;
};

void kept_shm_init(struct kept_shm *table);
/* Gives all back. */
void kept_shm_clear(struct kept_shm *table);

/*
 * Takes ownership of @fd. False, and it is closed: there are too many, @id is @owner's already, or
 * its seals would keep its content from being given back.
 */
bool kept_shm_add(struct kept_shm *table, int owner, uint32_t id, int fd);

/* @owner has released @id, if that is one of these; without one: all of its own. */
void kept_shm_release(struct kept_shm *table, int owner, uint32_t id);
void kept_shm_release_all(struct kept_shm *table, int owner);

#endif /* GUARD_KEPT_SHM_H */
