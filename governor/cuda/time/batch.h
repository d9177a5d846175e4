/* SPDX-License-Identifier: MIT */
/* The parts of the meter: batches and their events, and the thread that sees their ends. */
#ifndef GOVERNOR_CUDA_BATCH_H
#define GOVERNOR_CUDA_BATCH_H

#include "event_clock.h"
#include "gpu.h"
#include "lane.h"
#include "learn.h"

/* What is debited at most for a batch that may be filled, and how much is owed at most. */
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
/* The first launches of a slice that was held back may keep the GPU waiting for so long. */
#define RAMP_NS 500000u
/* So much work may wait behind what is stuck, without a turn of its own. */
#define DEFERRED_MOST_NS 32000000u
/*
 * Only a thread can record an event on its own default stream. Once such a batch had to end without
 * one, because the thread made no more calls, there is one after each launch for so long.
 */
#define UNSEEN_NS 1000000000u
/* Events that are kept for later batches. */
#define SPARES_MOST 64
/* Markers of free work that are awaited at most. */
#define MARKS_MOST 64
/* Streams of a thread whose free launches are counted apart. */
#define MARK_PLACES 8
#define MARK_GPUS   4
/* Contexts whose events are known by the host's clock at once. */
#define CLOCKS 4

/**
 * struct stamp - an event that was recorded: the end of a batch, and the begin of the next one if
 * its stream stays busy
 * @context: batch_aside() while its context may be ending
 * @event: NULL: it has ended with its context
 * @uses: under the meter's lock
 */
struct stamp {
    struct stamp *next;
    CUcontext context;
    CUevent event;
    unsigned int uses;
};

/**
 * struct place - a stream, as it can be told from others
 * @context: batch_aside() while that may be ending
 * @thread: whose own default stream it is; 0: any thread means the same stream
 */
struct place {
    CUcontext context;
    CUstream stream;
    bool per_thread;
    uint64_t thread;
};

/**
 * struct batch - launches of one stream with one debit
 * @work: its estimate is that of what was launched so far
 * @made_in: its context, for good
 * @debited_ns: what @work's debit is
 * @most_ns: it is full with so much
 * @launched_ns: after its last launch, by the host's clock
 * @gap_until: until then the GPU may have waited for the program, since it was submitted: until its
 * end was recorded, or, if the stream had work then, for the last launch
 * @launches: so far
 * @shares_ns: what was charged of its class when it was opened
 * @key: of its launches; @mixed: they have several
 * @begin: before the first launch; NULL: the driver refused
 * @end: after the last launch; NULL: it is open, or the driver refused. An open one has it only if
 * the thread may not be seen again, see UNSEEN_NS
 * @was_busy: the stream had work when the end was recorded; only known if the program took long to
 * launch
 * @is_apart: its stream may wait for something behind it, so the next batch begins later
 * @pending: launches of it whose calls of the driver have not returned. If it is closed meanwhile,
 * the last of their threads records its end, behind them; with @unseen, none is recorded
 * @taken: it takes no more launches
 * @left: it has ended without those that were pending, which are owed; @retired: nothing else is
 * left to do, and the last of them frees it
 * @closing: a thread records its end, and is the one that frees it if it is @gone
 */
struct batch {
    struct batch *next;
    struct lane_work work;
    struct place at;
    CUcontext made_in;
    uint64_t debited_ns;
    uint64_t most_ns;
    uint64_t launched_ns;
    uint64_t gap_until;
    unsigned int launches;
    unsigned int pending;
    uint64_t shares_ns;
    uint64_t key;
    bool mixed;
    struct stamp *begin;
    struct stamp *end;
    bool was_busy;
    bool is_apart;
    bool unseen;
    bool taken;
    bool left;
    bool retired;
    bool closing;
    bool gone;
};

/**
 * struct context_clock - of one context's events
 * @last: the latest end; NULL: the place is free
 * @seen_ns: when it was seen
 */
struct context_clock {
    struct stamp *last;
    uint64_t seen_ns;
    struct event_clock clock;
};

/* An event behind work that was not measured, and the member's number of it. */
struct mark {
    uint64_t placed_ns;
    struct stamp *stamp;
    enum governor_class class;
    uint64_t number;
};

/**
 * struct meter - of a GPU's time
 * @looks: held by whoever looks at events of a context that may end meanwhile. A launch waits for
 *         it never, because the driver may make such a look wait for another launch.
 * @clocks, @seen_ns: when the last end of each class was seen, by the host's clock; @runs: whether
 * work of it ran at the last look; under @looks
 *
 * @lock: over what follows. Never held in a call of the driver's: one that records an event waits
 *        while the stream's queue is full, possibly for a launch of another thread.
 * @open, @ended: batches that take launches, and batches whose end is awaited, in their order.
 *                Only whoever holds @looks takes some out of @ended
 * @shares_ns: what was charged, by class
 * @unseen_until: see UNSEEN_NS
 * @marks: in the order in which they were placed. Only whoever holds @looks takes some out
 */
struct meter {
    struct gpu *gpu;
    pthread_mutex_t looks;
    struct context_clock clocks[CLOCKS];
    uint64_t seen_ns[GOVERNOR_CLASSES];
    bool runs[GOVERNOR_CLASSES];

    pthread_mutex_t lock;
    pthread_cond_t work;
    bool has_reaper;
    struct batch *open;
    struct batch *ended;
    struct stamp *spares;
    unsigned int spare_count;
    uint64_t shares_ns[GOVERNOR_CLASSES];
    uint64_t unseen_until;
    struct learned learned;
    struct mark marks[MARKS_MOST];
    unsigned int mark_count;
};

/*
 * In place of a context that may be ending right now, for its batches, spares and markers: no
 * thread's context is this, so nobody finds them.
 */
static inline CUcontext batch_aside(const struct meter *meter)
{
    return (CUcontext)(uintptr_t)meter;
}

/*
 * The stream of the calling thread. If it is its own default one, another thread means another
 * stream by the same handle, and can record nothing there.
 */
struct place batch_place(CUcontext context, CUstream stream, bool per_thread);

static inline bool batch_same_place(const struct place *a, const struct place *b)
{
    return a->context == b->context && a->stream == b->stream && a->per_thread == b->per_thread &&
           a->thread == b->thread;
}

/* These call the driver: without the lock, and with the calling thread's capture mode relaxed. */

/* An event that is recorded there, in the thread's context; NULL: the driver refused. */
struct stamp *stamp_record(struct meter *meter, CUcontext context, const struct place *at);
/* One use less; NULL: nothing. */
void stamp_put(struct meter *meter, struct stamp *stamp);

/* When the stamp was, by the host's clock; it is seen @now. With @looks. */
uint64_t stamp_time(struct meter *meter, struct stamp *stamp, uint64_t now);

/* Frees one that is in no list any more. */
void batch_discard(struct meter *meter, struct batch *batch);
/* Records the end of a batch that batch_take_out() has given to the caller. */
void batch_close(struct meter *meter, struct batch *batch);
/*
 * The same without a new event, if its stream is another thread's, or captures, or has ended. If it
 * has none so far, it is charged by the estimates.
 */
void batch_close_unseen(struct meter *meter, struct batch *batch);
/* Its end was seen, or there is no event of it: measures, charges, learns and frees it. */
void batch_retire(struct meter *meter, struct batch *batch);
/* It is charged with what is owed for small copies. As lane_end(). */
uint64_t batch_charge(struct meter *meter, const struct lane_work *work, uint64_t ns,
                      uint64_t end_at);

/* These need the lock. */

/* The first one of this stream; NULL: none is. */
struct batch *batch_find(struct batch *list, const struct place *at);
/*
 * Out of the open ones: its end is awaited, as soon as it was recorded. True: the caller does that.
 * Else a launch of another thread is on its way to the driver, and that thread does. To wait for it
 * here could be for ever: the driver may hold it until this thread has launched something.
 */
bool batch_take_out(struct meter *meter, struct batch *batch);
void batch_unlink(struct batch **list, const struct batch *batch);

/*
 * Behind what was launched so far and not measured: places a marker on the stream, for all but the
 * last of its @count launches, which is the one to come. Waits while the GPU is further behind than
 * it may be, as if CUDA's own queue were full. False: there is none.
 */
bool mark_place(struct meter *meter, enum governor_class class, const struct place *at,
                uint32_t *count);
/* Takes out markers that the GPU has come to. With @looks. */
void mark_look(struct meter *meter);
/* With the lock: when to look again for the first marker of a context; 0: none is awaited. */
uint64_t mark_awaited_ns(const struct meter *meter, uint64_t now);

/* With the lock: starts the thread that sees ends, of which there is none. False: it cannot. */
bool reaper_start(struct meter *meter);

#endif
