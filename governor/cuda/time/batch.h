/* SPDX-License-Identifier: MIT */
/* The parts of the meter: batches and their events, and the thread that sees their ends. */
#ifndef GOVERNOR_CUDA_BATCH_H
#define GOVERNOR_CUDA_BATCH_H

#include "backlog.h"
#include "costs.h"
#include "event_clock.h"
#include "meter.h"

#include <time.h>

/* A batch is as long as this by the estimates; a longer launch is one of its own. */
#define BATCH_NS 500000u
/* A batch that is not full after this time gets no more launches. */
#define STALE_NS 2000000u
/*
 * If the program has launched nothing more for so long after a batch's work should be done, the
 * batch ends; for up to so much longer, which nobody can foresee.
 */
#define QUIET_NS      100000u
#define QUIET_MORE_NS 200000u
/* Launches may take this long beyond twice their work's time. */
#define SPARSE_NS 50000u
/* So much work may wait behind what is stuck, without a turn of its own. */
#define DEFERRED_MOST_NS 32000000u
/* A function that was not measured yet. */
#define UNKNOWN_NS 100000u
/* Events that are kept for later batches. */
#define SPARES_MOST 64

/**
 * struct batch - launches of one stream with one debit
 * @context: its stream's; batch_aside() while that may be ending
 * @made_in: the same, for good
 * @thread: whose own default stream it is; 0: any thread means the same stream
 * @opened_ns, @launched_ns, @closed_ns: by the host's clock: before its begin was recorded, after
 * its last launch, before its end was recorded
 * @behind_ns: how long others' work was before it then
 * @passes: of the member then, see governor_member_passes()
 * @sum_ns, @launches: so far, by the estimates
 * @shares_ns: of the class's ends when it was opened
 * @key: of its launches; @mixed: they have several
 * @begin: before the first launch; NULL: the driver refused
 * @end: after the last launch; NULL: it is open, or the driver refused
 * @was_busy: the stream had work when the end was recorded; only known if the program took long to
 * launch
 * @closing: a thread records its end, and is the one that frees it if it is @gone
 * @begun: the GPU was seen to have come to it
 * @unbegun: its debit waits for that
 * @stuck: it has not begun for so long that what comes after must not wait for it
 * @told_ns: how long it had waited when the arbiter was last told; 0: never
 */
struct batch {
    struct batch *next;
    uint64_t id;
    uint64_t debit;
    enum governor_class class;
    CUcontext context;
    CUcontext made_in;
    CUstream stream;
    bool per_thread;
    uint64_t thread;
    uint64_t opened_ns;
    uint64_t launched_ns;
    uint64_t closed_ns;
    uint64_t behind_ns;
    uint32_t passes;
    uint64_t sum_ns;
    uint64_t shares_ns;
    unsigned int launches;
    uint64_t key;
    bool mixed;
    CUevent begin;
    CUevent end;
    bool was_busy;
    bool closing;
    bool gone;
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
 * struct ends - what was seen of a class of work; under @looks, except @shares_ns
 * @last: the latest end, from which the next one's time counts
 * @seen_ns: when it was seen, by the host's clock
 * @clock: of its context
 * @shares_ns: by how much each end came after the one before, or after its own begin if that was
 *             later; in all. Under @lock
 */
struct ends {
    struct spare last;
    uint64_t seen_ns;
    struct event_clock clock;
    uint64_t shares_ns;
};

/**
 * struct meter - of a GPU's time
 * @looks: held by whoever looks at events of a context that may end meanwhile. A launch waits for
 *         it never, because the driver may make such a look wait for another launch.
 * @ends: of each class
 *
 * @lock: over what follows. Never held in a call of the driver's: one that records an event waits
 *        while the stream's queue is full, possibly for a launch of another thread.
 * @open, @ended: batches that take launches, and batches whose end is awaited, in their order.
 *                Only whoever holds @looks takes some out of @ended
 */
struct meter {
    struct gpu *gpu;
    pthread_mutex_t looks;
    struct ends ends[GOVERNOR_CLASSES];

    pthread_mutex_t lock;
    pthread_cond_t work;
    bool has_reaper;
    struct batch *open;
    struct batch *ended;
    uint64_t batches;
    struct spare spares[SPARES_MOST];
    unsigned int spare_count;
    struct costs costs;
    struct backlog backlogs[GOVERNOR_CLASSES];
};

static inline uint64_t batch_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * In place of a context that may be ending right now, for its batches, spares and markers: no
 * thread's context is this, so nobody finds them.
 */
static inline CUcontext batch_aside(const struct meter *meter)
{
    return (CUcontext)(uintptr_t)meter;
}

/* NULL: no memory. */
struct meter *meter_of(struct gpu *gpu);

/*
 * A number of the calling thread, if the stream is its own default one: another thread means
 * another stream by the same handle, and can record nothing there. Else 0.
 */
uint64_t meter_thread_of(CUstream stream, bool per_thread);

/* These call the driver: without the lock, and with the calling thread's capture mode relaxed. */

/* An event that is recorded on the stream; NULL: the driver refused. */
CUevent batch_record(struct meter *meter, CUcontext context, CUstream stream, bool per_thread);
void batch_give_event(struct meter *meter, CUcontext context, CUevent event);
/* Frees one that is in no list any more, and its events. */
void batch_discard(struct meter *meter, struct batch *batch);
/* Records the end of a batch that batch_take_out() has taken. */
void batch_close(struct meter *meter, struct batch *batch);
/* The same without an event of its end: it is charged by the estimates. */
void batch_close_unseen(struct meter *meter, struct batch *batch);
/* Its end was seen, or there is no event of it: measures, charges, learns and frees it. */
void batch_retire(struct meter *meter, struct batch *batch, CUevent end);

static inline bool batch_same_stream(const struct batch *a, const struct batch *b)
{
    return a->context == b->context && a->stream == b->stream && a->per_thread == b->per_thread &&
           a->thread == b->thread;
}

/* These need the lock. */

/* The one that takes launches of this stream; NULL: none does. */
struct batch *batch_find_open(struct meter *meter, const struct launch *launch, CUcontext context);
/* Out of the open ones: its end is awaited, as soon as the caller has recorded it. */
void batch_take_out(struct meter *meter, struct batch *batch);
void batch_unlink(struct batch **list, const struct batch *batch);

/* The thread that sees ends; started with the first batch. False: there is none. */
bool reaper_start(struct meter *meter);

#endif
