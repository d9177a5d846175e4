/* SPDX-License-Identifier: MIT */
/*
 * Memory that clients were given, by descriptors.
 *
 * A DMA buffer is charged to the slice until only the keeper holds it.
 *
 * Pages of plain shared memory are charged to whichever cgroup touched them first, often the
 * guard's, as long as anybody has the memfd, and the kernel does not say who has one. But its
 * content can be given back, whoever has it, as soon as it is released. What a client writes there
 * afterwards is charged to the client.
 */
#ifndef GUARD_KEPT_H
#define GUARD_KEPT_H

#include "member.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct kept_table
 * @member: of the slice; the caller's, set before the first buffer is added
 * @held: of struct kept: what sessions have not released, by connection and number
 * @released: of struct kept: DMA buffers that are released, and that somebody else may still hold
 * @copies: by inode: how many of the table's DMA buffers are of one
 * @buffers, @memfds: how many there are of each
 */
struct kept_table {
    GovernorMember *member;
    GHashTable *held;
    GPtrArray *released;
    GHashTable *copies;
    guint buffers;
    guint memfds;
};

void kept_init(struct kept_table *table);
void kept_clear(struct kept_table *table);

/*
 * Takes ownership of @fd, a memfd (@shm) or a DMA buffer. False, and it is closed: there are too
 * many, @id is @owner's already, or: the memfd's seals would keep its content from being given
 * back; the slice has no room for the buffer, or the kernel does not report what is needed about
 * it.
 */
bool kept_add(struct kept_table *table, int owner, uint32_t id, int fd, bool shm);

/* @owner has released @id; without one: all of its memory. */
void kept_release(struct kept_table *table, int owner, uint32_t id);
void kept_release_all(struct kept_table *table, int owner);

/*
 * Returns the memory of buffers that were released and that nobody else holds. Returns how many
 * those were.
 */
guint kept_sweep(struct kept_table *table);

/* Bytes that have been released, and that somebody else holds. */
uint64_t kept_released_bytes(const struct kept_table *table);

#endif /* GUARD_KEPT_H */
