// SPDX-License-Identifier: MIT
#include "mover_hold.h"

#include "drain.h"
#include "forks.h"
#include "fronts.h"

/* Over all that moves, and over the vault's pieces. */
static pthread_mutex_t holding = PTHREAD_MUTEX_INITIALIZER;
/* Under that: GPUs whose movers keep threads out. */
static unsigned int shutting;
/*
 * Counts the times in which somebody was behind the gate. What was copied since the last one is as
 * it was: nothing has been written.
 */
static uint64_t period = 1;
static _Thread_local bool holds_contexts;

void mover_hold(void)
{
    pthread_mutex_lock(&holding);
}

void mover_release(void)
{
    pthread_mutex_unlock(&holding);
}

uint64_t mover_period(void)
{
    return period;
}

void mover_hold_contexts(void)
{
    holds_contexts = fronts_are_installed();
    if (!holds_contexts)
        return;
    mover_hold();
    drain_settle();
}

void mover_release_contexts(void)
{
    if (holds_contexts)
        mover_release();
    holds_contexts = false;
}

bool mover_shut_out(struct gpu *gpu, uint64_t limit_ns)
{
    if (!shutting && !fronts_close(limit_ns))
        return false;
    period += !shutting && fronts_were_passed();
    shutting++;
    gpu->shut = true;
    return true;
}

void mover_let_in(struct gpu *gpu)
{
    if (!gpu->shut)
        return;
    gpu->shut = false;
    if (!--shutting)
        fronts_open();
}

void mover_settle(struct gpu *gpu)
{
    if (!atomic_load(&gpu->displaced))
        mover_let_in(gpu);
}

void mover_forget_parent(void)
{
    pthread_mutex_init(&holding, NULL);
    shutting = 0;
    period++;
}
