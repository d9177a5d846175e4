// SPDX-License-Identifier: MIT
/* Branches, ends and barriers. */
#include "inside.h"

#include <stdio.h>

int run_bra(struct thread *thread, const struct instruction *at)
{
    thread->pc = at->target;
    return STEP_ON;
}

/* By number, of a list of labels. */
int run_brx(struct thread *thread, const struct instruction *at)
{
    const struct ptx_function *function = thread->frames[thread->depth - 1].function;
    uint64_t which = cut(get(thread, &at->a[0]), 4), list = get(thread, &at->a[1]);

    if (list >= function->target_lists || which >= function->targets[list].count)
        return PTX_BAD_CODE_ADDRESS;
    thread->pc = function->targets[list].list[which];
    return STEP_ON;
}

int run_exit(struct thread *thread, const struct instruction *at)
{
    (void)thread;
    (void)at;
    return STEP_EXIT;
}

int run_trap(struct thread *thread, const struct instruction *at)
{
    (void)thread;
    (void)at;
    return PTX_FAILED;
}

/* Fences, hints: threads run one after the other, so what one has stored the others see. */
int run_nothing(struct thread *thread, const struct instruction *at)
{
    (void)thread;
    (void)at;
    return STEP_ON;
}

int run_unsupported(struct thread *thread, const struct instruction *at)
{
    struct ptx_error *error = &thread->block->launch->error;

    error->line = at->line;
    snprintf(error->reason, sizeof(error->reason), "%s",
             at->name ? at->name : "a vector of an atomic instruction");
    return PTX_UNSUPPORTED;
}

/* The barrier's number, then of how many threads; the predicate of bar.red is last. */
int run_bar(struct thread *thread, const struct instruction *at)
{
    unsigned int first = at->flags & FLAG_RED ? 1 : 0;
    unsigned int last = at->count - first;
    uint64_t expected = last > first + 1 ? cut(get(thread, &at->a[first + 1]), 4) : 0;

    if (at->flags & FLAG_WARP)
        return run_bar_warp(thread, at);
    thread->barrier = (uint32_t)get(thread, &at->a[first]) % BARRIERS;
    if (at->flags & FLAG_ARRIVE) {
        thread->block->arrivals[thread->barrier]++;
        return STEP_ON;
    }
    thread->expected = (uint32_t)expected;
    thread->given = first ? get(thread, &at->a[at->count - 1]) : 0;
    thread->meeting = at;
    thread->wait = WAIT_BARRIER;
    return STEP_WAIT;
}
