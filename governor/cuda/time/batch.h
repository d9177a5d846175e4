/* SPDX-License-Identifier: MIT */
/* The parts of the meter: batches and their events, and the thread that sees their ends. */
#ifndef GOVERNOR_CUDA_BATCH_H
#define GOVERNOR_CUDA_BATCH_H

#include "costs.h"
#include "meter.h"

#include <time.h>

/* A batch is as long as this by the estimates; a longer launch is one of its own. */
#define BATCH_NS 500000u
/* A batch that is not full after this time gets no more launches. */
#define STALE_NS 2000000u
/* A function that was not measured yet. */
#define UNKNOWN_NS 100000u
/* Events that are kept for later batches. */
#define SPARES_MOST 64

/**
 * struct batch - launches of one stream with one debit
 * @opened_ns: by the host's clock
 * @behind_ns: how long others' work was before it then
 * @sum_ns, @launches: so far, by the estimates
 * @key: of its launches; @mixed: they have several
 * @begin: before the first launch; NULL: the driver refused
 * @end: after the last launch; NULL: it is open
 * @begun: the GPU was seen to have come to it
 * @unbegun: its debit waits for that
 * @stuck: it has not begun for so long that what comes after must not wait for it
 * @told_ns: how long it had waited when the arbiter was last told; 0: never
 */
struct batch {
    struct batch *next;
    uint64_t id;
    uint64_t debit;
    CUcontext context;
    CUstream stream;
    bool per_thread;
    uint64_t opened_ns;
    uint64_t behind_ns;
    uint64_t sum_ns;
    unsigned int launches;
    uint64_t key;
    bool mixed;
    CUevent begin;
    CUevent end;
    bool begun;
    bool unbegun;
    bool stuck;
    uint64_t told_ns;
};

struct spare {
    CUcontext context;
    CUevent event;
};

/**
 * struct meter - of a GPU's time
 * @lock: over what follows
 * @open, @ended: batches that take launches, and batches whose end is awaited, in their order
 * @last: the latest end that was seen, from which the next one's time counts
 * @seen_ns: when it was seen, by the host's clock
 */
struct meter {
    struct gpu *gpu;
    pthread_mutex_t lock;
    pthread_cond_t work;
    bool has_reaper;
    struct batch *open;
    struct batch *ended;
    uint64_t batches;
    struct spare last;
    uint64_t seen_ns;
    struct spare spares[SPARES_MOST];
    unsigned int spare_count;
    struct costs costs;
};

static inline uint64_t batch_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* All under the meter's lock, and with the calling thread's capture mode relaxed. */

/* A recorded event on the batch's stream; NULL: the driver refused. */
CUevent batch_record(struct meter *meter, const struct batch *batch);
void batch_give_event(struct meter *meter, CUcontext context, CUevent event);
/* Takes it out of the open ones: its end is awaited, or if there is no event, charged now. */
void batch_close(struct meter *meter, struct batch *batch);
/* Takes it out of its list, charges it by the estimates, and frees it. */
void batch_give_up(struct meter *meter, struct batch **list, struct batch *batch);
/* Its end was seen: measures, charges, learns and frees it. */
void batch_retire(struct meter *meter, struct batch *batch);

/* The thread that sees ends; started with the first batch. False: there is none. */
bool reaper_start(struct meter *meter);

#endif
