/* SPDX-License-Identifier: MIT */
/*
 * DMA buffers that clients were given: each charged to the slice until nobody but the keeper has
 * it.
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
 * @buffers: of struct kept; @by_owner: those that a session has not given up, by its connection and
 * number
 * @copies: by inode: how many of @buffers are of one
 * @released: how many have been given up
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

/* Takes @fd. False: it is closed: there are too many, the slice has no room, @id is @owner's
 * already, or that can't be told of @fd what has to be. */
bool kept_add(struct kept_table *table, int owner, uint32_t id, int fd);

/* @owner has given up @id; without one: all that are its. */
void kept_release(struct kept_table *table, int owner, uint32_t id);
void kept_release_all(struct kept_table *table, int owner);

/* Gives back what was given up and nobody else has. Returns how many those were. */
guint kept_sweep(struct kept_table *table);

/* Bytes that have been given up, and that somebody else has. */
uint64_t kept_released_bytes(const struct kept_table *table);

#endif /* GUARD_KEPT_H */
