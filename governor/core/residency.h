/* SPDX-License-Identifier: MIT */
/*
 * Which processes have their memory on a GPU that is lent more of than there is, who waits for it,
 * and who gives how much. A slice's promise is always free for it or its own; the rest of the
 * card, the pool, is lent. A process runs with all of its memory on the card or not at all.
 *
 * Pure: it is told of messages and the time, and writes orders into struct residency_member. The
 * caller passes these on, and calls residency_run() after each event and at the time it returned.
 * Bytes are granted only after somebody has given them, so that what is on the card, and what is
 * granted, are never more than the card, whatever members say. Times are ns of CLOCK_MONOTONIC.
 */
#ifndef GOVERNOR_RESIDENCY_H
#define GOVERNOR_RESIDENCY_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum residency_way { RESIDENCY_OUT, RESIDENCY_IN, RESIDENCY_WAYS };

enum residency_state {
    RESIDENCY_HOME,    /* all of it is on the card */
    RESIDENCY_LEAVING, /* is to give @leave bytes, and does not run */
    RESIDENCY_AWAY,    /* some of it is in the host's memory */
    RESIDENCY_COMING,  /* brings back what it is granted */
};

enum residency_answer {
    RESIDENCY_GRANTED,
    RESIDENCY_WAITS,   /* residency_member.answered says when it is granted */
    RESIDENCY_REFUSED, /* beyond the slice's memory, or nobody could make so much room */
};

/**
 * struct residency_settings - of a slice
 * @vram: the limit of all its memory, 0: none; @promised: the part that is always on the card
 */
struct residency_settings {
    uint64_t vram;
    uint64_t promised;
    uint32_t priority;
    uint32_t weight;
    bool best_effort;
};

/**
 * struct residency_slice
 * @fixed: what it has on the card that is no member's, and does not move
 * @kept: of that, what its members said they gave; while there is some, they leave first, and only
 * what is promised comes back
 * @on_card: what it has there, with what its members are granted; @total: all its memory, with what
 * they wait for; @leaving: what they were told to give and have not given yet
 * @exchanged_at: when memory last moved for it; @gave_way_at: when it last had to leave for a
 * better class while it worked; 0: never
 */
struct residency_slice {
    struct residency_settings settings;
    uint64_t fixed;
    uint64_t kept;
    uint64_t on_card;
    uint64_t total;
    uint64_t leaving;
    uint64_t exchanged_at;
    uint64_t gave_way_at;
};

/**
 * struct residency_member - a process, by the caller's message
 * @resident, @out: bytes on the card and in the host's memory; @floor: of @resident what cannot
 * move
 * @clean: the host has a copy of what it could be told to give, which leaves without another one
 * @busy: it has work in flight; else since @idle_since it has none
 * @wanted: an allocation that waits; @asks: a call waits for it to be HOME; both since @waits_since
 * @home_since: when its turn began; @stuck_until: it could not leave, and is not asked before;
 * @away_until: it could not come back, and is not granted anything before
 * @stays: nothing of it can move
 * @claims: what it waits for is its slice's promise, which goes before all else, and is not refused
 * because others cannot give it yet
 *
 * Orders: @leave: bytes that it is to give; @granted: bytes that it may bring back, or that are put
 * by for its allocation; @answered: that is granted. @changed: one of them or its state has
 * changed; the caller resets this and @answered
 * @starved: it has waited for a minute; reset by the caller
 */
struct residency_member {
    struct residency_slice *slice;
    enum residency_state state;
    uint64_t resident;
    uint64_t out;
    uint64_t floor;
    bool clean;
    bool busy;
    bool asks;
    bool stays;
    bool claims;
    uint64_t wanted;
    uint64_t idle_since;
    uint64_t waits_since;
    uint64_t home_since;
    uint64_t stuck_until;
    uint64_t away_until;
    uint64_t leave;
    uint64_t granted;
    bool answered;
    bool changed;
    bool starved;
    bool told_starved;
};

/**
 * struct residency - of a GPU
 * @capacity: bytes that slices can have; @promised: of these to slices; @lent: of the rest
 * @claimant: the one member that may be granted a part of what it needs; NULL: none
 * @ns_per_byte: what a move takes, learnt; @slowest: as is believed
 * @stretch: turns are so many times longer, because moves take too much of the time
 * @moving_ns: what moves took of the minute since @minute_at
 */
struct residency {
    uint64_t capacity;
    uint64_t promised;
    uint64_t lent;
    GPtrArray *slices;
    GPtrArray *members;
    struct residency_member *claimant;
    double ns_per_byte[RESIDENCY_WAYS];
    double slowest;
    uint32_t stretch;
    double moving_ns;
    uint64_t minute_at;
    uint64_t next_at;
};

/* @rate: bytes per second of the link, each way, until more is known. */
void residency_init(struct residency *residency, uint64_t capacity, double rate);
void residency_clear(struct residency *residency);

/* NULL: the card has no room for the promise, or it is lent at the moment. */
struct residency_slice *residency_add_slice(struct residency *residency,
                                            const struct residency_settings *settings);
/*
 * False and no change: as above, or another slice could not have all of its memory any more. What
 * is lent is free again when its borrowers have left.
 */
bool residency_set_slice(struct residency *residency, struct residency_slice *slice,
                         const struct residency_settings *settings);
/* Without members. Frees @slice. */
void residency_remove_slice(struct residency *residency, struct residency_slice *slice);

/*
 * A process joins; @member is zero but for its slice, @resident and @out. After a restart it has
 * some: that is believed, and nothing is granted until all fits.
 */
void residency_join(struct residency *residency, struct residency_member *member, uint64_t now);
/* So much the slice has on the card beside its members; believed as above. */
void residency_set_fixed(struct residency *residency, struct residency_slice *slice,
                         uint64_t bytes);
/* So much of that members have kept although they said they gave it. */
void residency_set_kept(struct residency_slice *slice, uint64_t bytes);
/* It has ended, and has nothing any more. */
void residency_leave(struct residency *residency, struct residency_member *member);

/* It wants to allocate @bytes; one at a time. */
enum residency_answer residency_reserve(struct residency *residency,
                                        struct residency_member *member, uint64_t bytes,
                                        uint64_t now);
/* Whether so much more of the slice on the card is covered by its promise; and whether there is. */
bool residency_is_promised(const struct residency_slice *slice, uint64_t bytes);
bool residency_has_room(const struct residency *residency, const struct residency_slice *slice,
                        uint64_t bytes);
/* It does not wait for that any more. */
void residency_cancel(struct residency *residency, struct residency_member *member);
/* It has freed @resident bytes on the card and @out in the host's. False: it has not so much. */
bool residency_release(struct residency *residency, struct residency_member *member,
                       uint64_t resident, uint64_t out);
/* So much of what it has on the card cannot move. False: it has not so much. */
bool residency_set_floor(struct residency_member *member, uint64_t bytes);
/* A call of the member waits for it to be HOME. */
void residency_ask(struct residency_member *member, uint64_t now);
/*
 * Somebody may want it to leave, and while it is idle copies of so many bytes can be made for that:
 * of no more than it could be told to give. 0: of none.
 */
uint64_t residency_to_copy(const struct residency *residency, const struct residency_member *member,
                           uint64_t now);
/*
 * Bytes that it has waited for so long that best effort, which has them and is to give way at once,
 * cannot move them; 0: others than best effort have them, or nobody waits for long.
 */
uint64_t residency_missing(const struct residency *residency, const struct residency_member *member,
                           uint64_t now);
/* It has work in flight, or none from now on. */
void residency_set_busy(struct residency_member *member, bool busy, uint64_t now);

/*
 * It gave, or brought back, @bytes of what it was told to; in @ns, 0: without a copy. False: it was
 * not told so. It gives whole allocations, so the last one may be more than was left.
 */
bool residency_gave(struct residency *residency, struct residency_member *member, uint64_t bytes,
                    uint64_t ns);
bool residency_took(struct residency *residency, struct residency_member *member, uint64_t bytes,
                    uint64_t ns, uint64_t now);
/* It cannot give, or bring back, the rest now. */
void residency_stuck(struct residency *residency, struct residency_member *member, uint64_t now);

/* Whether it may have leases of time. */
static inline bool residency_is_home(const struct residency_member *member)
{
    return member->state == RESIDENCY_HOME;
}

/* What an exchange takes that brings in @bytes, with both directions at once. */
uint64_t residency_cost(const struct residency *residency, uint64_t bytes);
/* For how long the member may work while others of its rank wait for memory. */
uint64_t residency_turn(const struct residency *residency, const struct residency_member *member,
                        uint64_t cost);

/* Decides. Returns when to be called again at the latest; TIME_NEVER: not needed. */
uint64_t residency_run(struct residency *residency, uint64_t now);

#endif
