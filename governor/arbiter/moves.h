/* SPDX-License-Identifier: MIT */
/*
 * Memory that moves: tells residency.h of what members say, and members what it decides. On a GPU
 * whose capacity is not known everything fits.
 */
#ifndef GOVERNOR_MOVES_H
#define GOVERNOR_MOVES_H

#include "governor_protocol.h"
#include "residency.h"

#include <systemd/sd-event.h>

struct arbiter;
struct connection;
struct slice;
struct slice_settings;

/**
 * struct moves - of a GPU
 * @on: its capacity was known at some time; until then @residency has no slices
 * @look: once in a turn of the event loop; @timer: for turns, and for whoever waits
 */
struct moves {
    struct residency residency;
    bool on;
    sd_event_source *look;
    sd_event_source *timer;
};

/**
 * struct moves_member - a connection's part
 * @residency: its slice is NULL while moves.on is false
 * @unbelieved: of what it declared, more than its slice may have
 * @gave, @took: sums of what it said
 * @work: sum of its counters of submissions at the last look
 * @room_until: a RESERVE waits until then; 0: none does
 * @waits_since: it has waited for memory since then; 0: it does not
 */
struct moves_member {
    struct residency_member residency;
    uint64_t unbelieved;
    uint64_t gave;
    uint64_t took;
    uint64_t work;
    uint64_t room_until;
    uint64_t waits_since;
};

/**
 * struct moves_slice
 * @claim: waits for what of the promise others have
 * @moved: bytes, each way; @returns: how often a member came home
 * @waited_ns: of all its members that do not wait any more
 * @stuck: how often, by reason
 */
struct moves_slice {
    struct residency_slice *residency;
    struct residency_member claim;
    uint64_t moved[RESIDENCY_WAYS];
    uint64_t returns;
    uint64_t waited_ns;
    uint64_t stuck[GOVERNOR_STUCK_REASONS];
};

void moves_init(struct moves *moves, struct arbiter *arbiter);
void moves_clear(struct moves *moves);

/* The GPU's settings have changed. */
void moves_set_capacity(struct arbiter *arbiter);
/* The slice is new, or its settings have changed. */
void moves_set_slice(struct slice *slice);
void moves_remove_slice(struct slice *slice);
/* Its ledger has changed. */
void moves_set_fixed(struct slice *slice);

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

/* It has said that its memory moves, and its slice's does. */
bool moves_may_displace(const struct connection *connection);

/* Decides, and tells members. To be called after every event that matters to it. */
void moves_run(struct arbiter *arbiter);

/*
 * What is always there for the slice, and not lent to others now; what it has on the card, and in
 * the host's memory; for how long it has waited in all.
 */
uint64_t moves_promised(const struct slice *slice);
uint64_t moves_on_card(const struct slice *slice);
uint64_t moves_displaced(const struct slice *slice);
uint64_t moves_waited_ns(const struct slice *slice);

#endif
