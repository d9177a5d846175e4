/* SPDX-License-Identifier: MIT */
/*
 * Memory that moves: tells residency.h of what members say, and members what it decides. On a GPU
 * whose capacity is not known everything fits.
 */
#ifndef GOVERNOR_MOVES_H
#define GOVERNOR_MOVES_H

#include "arbiter_state.h"

void moves_init(struct moves *moves, struct arbiter *arbiter, const char *tree);
void moves_clear(struct moves *moves);

/* The GPU's settings have changed. */
void moves_set_capacity(struct arbiter *arbiter);
/* The slice is new, or its settings have changed. */
void moves_set_slice(struct slice *slice);
void moves_remove_slice(struct slice *slice);
/* Its ledger has changed: what of that stays on the card, and publish_memory(). */
void moves_publish_memory(struct slice *slice);

void moves_join(struct connection *connection);
void moves_leave(struct connection *connection);

/*
 * @bytes that the ledger has charged to it. 0; ENOMEM: the card has no room, and nobody makes any;
 * EINPROGRESS: somebody may.
 */
int moves_reserve(struct connection *connection, uint64_t bytes);
/* A RESERVE of it waits. */
bool moves_has_waiting(const struct connection *connection);
/* Whether the card has room for @bytes more of the slice that stay. */
bool moves_has_room(const struct slice *slice, uint64_t bytes);
/* It has returned so much of what it had on the card. False: it had not so much. */
bool moves_release(struct connection *connection, uint64_t bytes);

/*
 * MOVABLE, FLOOR, CLEAN, COME, GAVE, TOOK, STUCK and RELEASE_DISPLACED. NULL, or what is wrong with
 * the message.
 */
const char *moves_message(struct connection *connection, const struct governor_message *message);

/* What of its members is displaced comes back, as if a call of theirs waited. */
void moves_warm(struct slice *slice);

/* It got no host memory: others of its slice give back what they have for memory on the card. */
void moves_return_pieces(const struct connection *connection);

/* It has said that its memory moves, and its slice's does. */
bool moves_may_displace(const struct connection *connection);

/*
 * moves_kept.c: finds out who has kept what. Returns when to be called again; TIME_NEVER: not
 * needed.
 */
uint64_t moves_look_for_kept(struct arbiter *arbiter, uint64_t now);

/* Decides, and tells members. To be called after every event that matters to it. */
void moves_run(struct arbiter *arbiter);

/*
 * What is always there for the slice, and not lent to others now; what it has on the card, of that
 * what cannot move, and in the host's memory; for how long it has waited in all.
 */
uint64_t moves_promised(const struct slice *slice);
uint64_t moves_on_card(const struct slice *slice);
uint64_t moves_floor(const struct slice *slice);
uint64_t moves_displaced(const struct slice *slice);
/* What it waits for in vain, because best effort has it and does not give it. */
uint64_t moves_missing(const struct slice *slice);
uint64_t moves_waited_ns(const struct slice *slice);

#endif
