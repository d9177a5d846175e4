/* SPDX-License-Identifier: MIT */
/*
 * DMA buffers that clients were given: each is charged to the slice until only the keeper holds it.
 */
#ifndef GUARD_KEPT_H
#define GUARD_KEPT_H

#include "member.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct kept_table
 * @member: of the slice; the caller's, set before the first is added
 * @buffers: of struct kept; @by_owner: those that a session has not released, by its connection and
 * number
 * @copies: by inode: how many of @buffers are of one
 * @released: how many have been released
 */
struct kept_table {
    GovernorMember *member;
    GPtrArray *buffers;
    GHashTable *by_owner;
    GHashTable *copies;
    guint released;
};

void kept_init(struct kept_table *table);
void kept_clear(struct kept_table *table);

/*
 * Takes ownership of @fd. False, and it is closed: there are too many, the slice has no room, @id
 * is @owner's already, or the kernel does not report what is needed about @fd.
 */
bool kept_add(struct kept_table *table, int owner, uint32_t id, int fd);

/* @owner has released @id; without one: all of its buffers. */
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
