/* SPDX-License-Identifier: MIT */
/*
 * A card whose memory is lent by residency.c, in simulated time: slices that work in bursts, wait
 * for their memory, and copy it out and in over the card's bus (card.h) as they are told. What is
 * granted must be there, by the card's own count.
 */
#ifndef GOVERNOR_LENT_CARD_H
#define GOVERNOR_LENT_CARD_H

#include "card.h"
#include "clock.h"
#include "residency.h"

#define GIB     (1ull << 30)
#define HOUR_NS (3600 * NS_PER_S)
/* Of an H100 with 80 GB, less 2 per cent; PCIe 5, each way. */
#define LENT_CAPACITY (78 * GIB)
#define LENT_RATE     55e9
/* A slice's work is in pieces of this length, which nothing interrupts. */
#define LENT_OP_NS  NS_PER_S
#define LENT_SLICES 8
/* What the card needs to take memory back that has a copy: vLLM freed 47 GiB in 0.31 s. */
#define LENT_RELEASE_RATE 150e9

/**
 * struct lent_profile - of a slice
 * @vram, @promised: bytes
 * @weight: 0: 100
 * @from, @to: hours of the day in which bursts begin; both 0: always
 * @burst_ns, @gap_ns: GPU time of a burst, and time from its end to the next one, in the mean
 * @start_ns, @period_ns: the first burst, and time from one to the next, in place of @gap_ns and
 * with that length each; 0: as above
 * @by_clock: a burst ends so long after its begin, whatever was done; else after so much work
 */
struct lent_profile {
    const char *name;
    uint64_t vram;
    uint64_t promised;
    bool best_effort;
    unsigned weight;
    unsigned from, to;
    uint64_t burst_ns;
    uint64_t gap_ns;
    uint64_t start_ns;
    uint64_t period_ns;
    bool by_clock;
};

/**
 * struct lent_use - of a slice, or of several
 * @returns: how often it had its memory again; @waited_ns: for that, @worst_ns: at most
 * @moved: bytes, out and in
 */
struct lent_use {
    uint64_t work_ns;
    uint64_t returns;
    uint64_t waited_ns;
    uint64_t worst_ns;
    uint64_t moved;
};

/**
 * struct lent_slice - with one process
 * @left_ns: of its burst, which ends at @ends_at if that is by the clock; @next_at: when the next
 * one begins
 * @working: it has a piece of work on the card; @copies: chunks that are being copied, of @copying
 * bytes
 * @ahead: bytes that were copied ahead since it last worked; @copies_ahead: a chunk of them is
 * being
 * @asked_at: since when it waits for its memory; 0: it does not
 */
struct lent_slice {
    const struct lent_profile *profile;
    struct lent_use *use;
    struct lent_card *on;
    unsigned number;
    struct residency_member member;
    uint64_t left_ns;
    uint64_t ends_at;
    uint64_t next_at;
    bool working;
    unsigned copies;
    uint64_t copying;
    uint64_t ahead;
    bool copies_ahead;
    uint64_t asked_at;
};

/* @longest_turn_ns, @longest_cost_ns: that there were, for bounds of waits. */
struct lent_card {
    struct card card;
    struct residency residency;
    struct lent_slice slices[LENT_SLICES];
    unsigned count;
    uint64_t now;
    uint64_t random;
    uint64_t longest_turn_ns;
    uint64_t longest_cost_ns;
    bool ahead;
    bool told;
};

/* To be freed. @ahead: what is idle is copied ahead. */
struct lent_card *lent_card_new(uint64_t seed, bool ahead);
void lent_card_free(struct lent_card *on);

/* What is promised to it is there, and the rest comes with its first work. @use is added to. */
void lent_card_add(struct lent_card *on, const struct lent_profile *profile, struct lent_use *use);

/* The time goes on by @ns. */
void lent_card_run(struct lent_card *on, uint64_t ns);

/* How long something was copied to the card. */
uint64_t lent_card_moving_ns(const struct lent_card *on);

#endif
