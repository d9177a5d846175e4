// SPDX-License-Identifier: MIT
/*
 * Threads of a warp that meet: each says with whom, and what it brings. When all of them have come
 * to the instruction, it is done for all. Older forms without .sync are for those that run.
 */
#include "inside.h"

#include <math.h>

struct group {
    struct thread *threads[WARP];
    uint64_t given[WARP];
    uint32_t mask;
};

static int meet(struct thread *thread, const struct instruction *at, uint64_t given, uint64_t mask)
{
    thread->wait = WAIT_WARP;
    thread->meeting = at;
    thread->given = given;
    thread->mask = (uint32_t)mask;
    return STEP_WAIT;
}

/* The operand after the results. */
static unsigned int first_of(const struct instruction *at)
{
    return at->flags & FLAG_PAIR ? 2 : 1;
}

static uint64_t mask_of(const struct thread *thread, const struct instruction *at)
{
    return at->flags & FLAG_SYNC ? get(thread, &at->a[at->count - 1]) : UINT32_MAX;
}

int run_shfl(struct thread *thread, const struct instruction *at)
{
    return meet(thread, at, get(thread, &at->a[first_of(at)]), mask_of(thread, at));
}

int run_vote(struct thread *thread, const struct instruction *at)
{
    return meet(thread, at, get(thread, &at->a[1]) != 0, mask_of(thread, at));
}

int run_match(struct thread *thread, const struct instruction *at)
{
    return meet(thread, at, get_as(thread, &at->a[first_of(at)], at->type), mask_of(thread, at));
}

int run_redux(struct thread *thread, const struct instruction *at)
{
    return meet(thread, at, get_as(thread, &at->a[1], at->type), mask_of(thread, at));
}

int run_activemask(struct thread *thread, const struct instruction *at)
{
    return meet(thread, at, 0, UINT32_MAX);
}

int run_elect(struct thread *thread, const struct instruction *at)
{
    return meet(thread, at, 0, mask_of(thread, at));
}

int run_bar_warp(struct thread *thread, const struct instruction *at)
{
    return meet(thread, at, 0, at->count ? get(thread, &at->a[0]) : UINT32_MAX);
}

/* From which lane; @is_inside: there is one in the segment. */
static uint32_t source_of(const struct thread *thread, const struct instruction *at,
                          bool *is_inside)
{
    unsigned int first = first_of(at);
    uint32_t by = (uint32_t)get(thread, &at->a[first + 1]) & 31;
    uint32_t c = (uint32_t)get(thread, &at->a[first + 2]);
    uint32_t segment = c >> 8 & 31, lane = thread->lane;
    int32_t most = (int32_t)((lane & segment) | (c & 31 & ~segment));
    int32_t source = at->how == HOW_UP     ? (int32_t)lane - (int32_t)by
                     : at->how == HOW_DOWN ? (int32_t)(lane + by)
                     : at->how == HOW_BFLY ? (int32_t)(lane ^ by)
                                           : (int32_t)((lane & segment) | (by & ~segment));

    *is_inside = at->how == HOW_UP ? source >= most : source <= most;
    return *is_inside ? (uint32_t)source : lane;
}

static void end_shfl(struct thread *thread, const struct group *group)
{
    const struct instruction *at = thread->meeting;
    bool is_inside;
    uint32_t from = source_of(thread, at, &is_inside);

    /* Nothing is said of a lane that is not there. */
    if (from >= WARP || !(group->mask >> from & 1))
        from = thread->lane;
    put(thread, &at->a[0], T_B32, group->given[from]);
    if (at->flags & FLAG_PAIR)
        put(thread, &at->a[1], T_PRED, is_inside);
}

static void end_vote(struct thread *thread, const struct group *group)
{
    const struct instruction *at = thread->meeting;
    uint32_t set = 0;

    for (uint32_t i = 0; i < WARP; i++)
        if (group->mask >> i & 1)
            set |= (uint32_t)group->given[i] << i;
    if (at->how == HOW_BALLOT)
        put(thread, &at->a[0], T_B32, set);
    else if (at->how == HOW_ANY)
        put(thread, &at->a[0], T_PRED, set != 0);
    else
        put(thread, &at->a[0], T_PRED, set == group->mask || ((at->flags & FLAG_UNI) && !set));
}

static void end_match(struct thread *thread, const struct group *group)
{
    const struct instruction *at = thread->meeting;
    uint32_t equal = 0;

    for (uint32_t i = 0; i < WARP; i++)
        if ((group->mask >> i & 1) && group->given[i] == group->given[thread->lane])
            equal |= 1u << i;
    if (at->how == HOW_ALL && equal != group->mask)
        equal = 0;
    put(thread, &at->a[0], T_B32, equal);
    if (at->flags & FLAG_PAIR)
        put(thread, &at->a[1], T_PRED, equal != 0);
}

static uint64_t reduce_two(const struct instruction *at, uint64_t a, uint64_t b)
{
    bool is_less = types[at->type].is_signed ? (int64_t)a < (int64_t)b : a < b;

    if (types[at->type].is_float)
        return float_min_max(at->type, a, b, at->how == HOW_MAX);
    switch (at->how) {
    case HOW_ADD:
        return a + b;
    case HOW_MIN:
        return is_less ? a : b;
    case HOW_MAX:
        return is_less ? b : a;
    case HOW_AND:
        return a & b;
    case HOW_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static void end_redux(struct thread *thread, const struct group *group)
{
    const struct instruction *at = thread->meeting;
    uint64_t value = 0;
    bool is_first = true;

    for (uint32_t i = 0; i < WARP; i++) {
        if (!(group->mask >> i & 1))
            continue;
        value = is_first ? group->given[i] : reduce_two(at, value, group->given[i]);
        is_first = false;
    }
    put(thread, &at->a[0], at->type, value);
}

static void end_meeting(struct thread *thread, const struct group *group)
{
    const struct instruction *at = thread->meeting;

    thread->wait = WAIT_NOT;
    if (at->run == run_shfl) {
        end_shfl(thread, group);
    } else if (at->run == run_vote) {
        end_vote(thread, group);
    } else if (at->run == run_match) {
        end_match(thread, group);
    } else if (at->run == run_redux) {
        end_redux(thread, group);
    } else if (at->run == run_activemask) {
        put(thread, &at->a[0], T_B32, group->mask);
    } else if (at->run == run_elect) {
        uint32_t leader = (uint32_t)__builtin_ctz(group->mask);

        put(thread, &at->a[0], T_B32, leader);
        put(thread, &at->a[1], T_PRED, thread->lane == leader);
    }
}

/* Whom @thread waits for, if all of them have come. */
static bool gather(struct block *block, uint32_t first, const struct thread *thread,
                   struct group *group)
{
    const struct instruction *at = thread->meeting;
    bool is_loose =
        at->run == run_activemask || (!(at->flags & FLAG_SYNC) && !(at->flags & FLAG_WARP));

    *group = (struct group){0};
    for (uint32_t i = 0; i < WARP && first + i < block->count; i++) {
        struct thread *other = &block->threads[first + i];
        bool is_there = other->wait == WAIT_WARP && other->meeting == at;

        if (!(thread->mask >> i & 1) || other->wait == WAIT_ENDED)
            continue;
        if (!is_there && is_loose && other->wait != WAIT_NOT)
            continue;
        if (!is_there)
            return false;
        group->threads[i] = other;
        group->given[i] = other->given;
        group->mask |= 1u << i;
    }
    return group->mask >> thread->lane & 1;
}

bool warp_meet(struct block *block, uint32_t first)
{
    bool met = false;

    for (uint32_t i = first; i < first + WARP && i < block->count; i++) {
        struct group group;

        if (block->threads[i].wait != WAIT_WARP ||
            !gather(block, first, &block->threads[i], &group))
            continue;
        met = true;
        for (uint32_t k = 0; k < WARP; k++)
            if (group.threads[k])
                end_meeting(group.threads[k], &group);
    }
    return met;
}
