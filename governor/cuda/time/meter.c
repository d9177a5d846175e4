// SPDX-License-Identifier: MIT
#include "meter.h"

#include <stdlib.h>

#include "batch.h"
#include "join.h"
#include "real.h"

static struct meter *meter_new(struct gpu *gpu)
{
    struct meter *meter = calloc(1, sizeof(*meter));
    pthread_condattr_t monotonic;

    if (!meter)
        return NULL;
    meter->gpu = gpu;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&meter->looks, NULL);
    pthread_mutex_init(&meter->lock, NULL);
    pthread_cond_init(&meter->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return meter;
}

/* The GPU's; NULL: no memory. */
static struct meter *make_meter(struct gpu *gpu)
{
    struct meter *meter;

    pthread_mutex_lock(&gpu->own_lock);
    if (!gpu->meter)
        gpu->meter = meter_new(gpu);
    meter = gpu->meter;
    pthread_mutex_unlock(&gpu->own_lock);
    return meter;
}

bool meter_is_capturing(CUstream stream, bool per_thread)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = per_thread ? DRIVER(cuStreamIsCapturing_ptsz, stream, &status)
                                 : DRIVER(cuStreamIsCapturing, stream, &status);

    /* It fails for stream 0 while another captures: then a launch there fails, too. */
    return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/*
 * By the function, and the power of two of the size: it is often launched for batches of many
 * sizes.
 */
static uint64_t key_of(const struct launch *launch)
{
    uint64_t bits = launch->size ? 64 - (uint64_t)__builtin_clzll(launch->size) : 0;

    return learn_key(bits << 56, (uintptr_t)launch->what);
}

/**
 * struct opening - of a batch, for a launch that found none
 * @full: one that has no room for it, and is to be closed; NULL: none
 * @is_behind: the stream has work in flight; @is_stuck: which cannot go on
 * @is_watched: there is a thread that sees ends
 */
struct opening {
    struct meter *meter;
    struct place at;
    struct batch *full;
    bool is_behind;
    bool is_stuck;
    bool is_watched;
};

/*
 * Under the lock: whether the stream has work in flight. @stuck: it cannot go on. What is launched
 * there does not wait for room on the GPU then: it is behind what is stuck. But that is not without
 * a bound, and other streams' work is measured as ever.
 */
static bool is_in_flight(const struct opening *opening, bool *stuck)
{
    uint64_t deferred_ns = 0;
    bool any = false;

    *stuck = false;
    for (const struct batch *batch = opening->meter->ended; batch; batch = batch->next) {
        deferred_ns += batch->work.unbegun ? batch->work.estimate_ns : 0;
        if (!batch_same_place(&batch->at, &opening->at))
            continue;
        any = true;
        *stuck |= batch->work.stuck;
    }
    *stuck &= deferred_ns < DEFERRED_MOST_NS;
    return any;
}

static bool is_still_behind(void *data)
{
    const struct opening *opening = data;
    bool stuck, behind;

    pthread_mutex_lock(&opening->meter->lock);
    behind = is_in_flight(opening, &stuck);
    pthread_mutex_unlock(&opening->meter->lock);
    return behind;
}

/*
 * True if the launch is part of an open batch now, which stays until meter_launched(). A function
 * without a measurement gets a batch of its own.
 */
static bool join_batch(struct launch *launch, struct opening *opening)
{
    struct meter *meter = opening->meter;
    struct batch *batch;
    bool has_room;

    launch->key = key_of(launch);
    pthread_mutex_lock(&meter->lock);
    launch->estimate_ns = learn_known(&meter->learned, launch->key);
    launch->is_known = launch->estimate_ns;
    if (!launch->is_known)
        launch->estimate_ns = launch->guess_ns ? launch->guess_ns : LEARN_UNKNOWN_NS;
    batch = batch_find(meter->open, &opening->at);
    has_room =
        batch && launch->is_known && batch->work.class == launch->class &&
        (!batch->launches || batch->work.estimate_ns + launch->estimate_ns <= 2 * batch->most_ns) &&
        clock_now() < batch->work.submitted_at + STALE_NS;
    if (has_room) {
        launch->batch = batch;
        batch->pending++;
    } else {
        opening->full = batch && batch->launches && batch_take_out(meter, batch) ? batch : NULL;
        opening->is_behind = is_in_flight(opening, &opening->is_stuck);
        opening->is_watched = meter->has_reaper || reaper_start(meter);
    }
    pthread_mutex_unlock(&meter->lock);
    return has_room;
}

/**
 * struct late_begin - where a launch begins that came to the driver when its batch had ended
 * @place: its stream
 * @stamp: that batch's end; NULL: it is not known
 * @at: the last launch before that, by the host's clock: the GPU may have waited since
 */
struct late_begin {
    struct place place;
    struct stamp *stamp;
    uint64_t at;
};

/*
 * If the stream is still busy with its last batch, and waits for nothing behind it, this one begins
 * where that ends, without an event of its own.
 */
static void begin_batch(struct meter *meter, struct batch *batch)
{
    struct stamp *end = NULL;

    pthread_mutex_lock(&meter->lock);
    for (const struct batch *before = meter->ended; before; before = before->next)
        if (batch_same_place(&before->at, &batch->at))
            end = before->is_apart ? NULL : before->end;
    if (end)
        end->uses++;
    pthread_mutex_unlock(&meter->lock);
    if (end && DRIVER(cuEventQuery, end->event) == CUDA_ERROR_NOT_READY) {
        batch->begin = end;
        batch->work.waited_for_cap = false;
        return;
    }
    stamp_put(meter, end);
    batch->begin = stamp_record(meter, batch->made_in, &batch->at);
}

/*
 * Waits for the turn of what is @asked, and opens a batch, without the lock. Another thread may
 * have opened one on the same stream meanwhile: that ends. @late: NULL: the launch is still to
 * come. False: no memory.
 */
static bool open_batch(struct meter *meter, struct launch *launch, const struct place *at,
                       const struct governor_work *asked, const struct late_begin *late)
{
    struct batch *batch = calloc(1, sizeof(*batch)), *other;

    if (!batch)
        return false;
    lane_begin(meter->gpu->member, &batch->work, asked);
    batch->work.estimate_ns = 0;
    batch->debited_ns = asked->estimate_ns;
    batch->most_ns = governor_member_batch_ns(meter->gpu->member, launch->class);
    batch->at = *at;
    batch->made_in = at->context;
    if (late) {
        batch->begin = late->stamp;
        batch->work.submitted_at = late->at;
    } else {
        begin_batch(meter, batch);
    }
    pthread_mutex_lock(&meter->lock);
    other = batch_find(meter->open, at);
    if (other && (!other->launches || !batch_take_out(meter, other)))
        other = NULL;
    launch->batch = batch;
    batch->pending = 1;
    batch->shares_ns = meter->shares_ns[launch->class];
    batch->next = meter->open;
    meter->open = batch;
    pthread_cond_signal(&meter->work);
    pthread_mutex_unlock(&meter->lock);
    if (other)
        batch_close(meter, other);
    return true;
}

/* What may be added to the batch is debited, too. */
static void begin_own_batch(struct launch *launch, struct opening *opening)
{
    struct gpu *gpu = opening->meter->gpu;
    uint64_t filled = governor_member_batch_ns(gpu->member, launch->class);
    struct governor_work work = {.class = launch->class,
                                 .estimate_ns = launch->estimate_ns,
                                 .deferred = opening->is_stuck,
                                 .behind = opening->is_behind,
                                 .still_behind = is_still_behind,
                                 .data = opening};
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    filled = filled < BATCH_NS ? filled : BATCH_NS;
    if (launch->is_known && work.estimate_ns < filled)
        work.estimate_ns = filled;
    work.estimate_ns += atomic_load_explicit(&gpu->owed[launch->class], memory_order_relaxed);
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    if (opening->full)
        batch_close(opening->meter, opening->full);
    if (opening->is_watched)
        open_batch(opening->meter, launch, &opening->at, &work, NULL);
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
}

/*
 * How many launches of this thread were not measured since the last marker. Streams that share a
 * place share those, and GPUs with the same rest.
 */
static uint32_t *unmarked_on(const struct gpu *gpu, const struct launch *launch)
{
    static _Thread_local uint32_t unmarked[MARK_GPUS][GOVERNOR_CLASSES][MARK_PLACES];
    uintptr_t stream = (uintptr_t)launch->stream;

    return &unmarked[(unsigned int)gpu->device % MARK_GPUS][launch->class]
                    [(stream >> 4 ^ stream >> 9) % MARK_PLACES];
}

/* Puts a marker behind what was not measured. When the first one came, only a look can tell. */
static void mark_free(struct meter *meter, const struct launch *launch, const struct place *at)
{
    uint32_t *count = unmarked_on(meter->gpu, launch);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool is_placed;

    /* The launch that comes behind the marker is counted already. */
    if (*count < 2)
        return;
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    is_placed = mark_place(meter, launch->class, at, count);
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    if (!is_placed)
        return;
    pthread_mutex_lock(&meter->lock);
    if (mark_awaited_ns(meter, clock_now()) && (meter->has_reaper || reaper_start(meter)))
        pthread_cond_signal(&meter->work);
    pthread_mutex_unlock(&meter->lock);
}

/* One that is measured, or behind which a marker is due. */
static __attribute__((noinline)) void before_not_free(struct gpu *gpu, struct launch *launch,
                                                      enum governor_pass pass)
{
    struct opening opening;
    CUcontext context;

    opening.meter = atomic_load_explicit(&gpu->meter, memory_order_acquire);
    if (!opening.meter && !(opening.meter = make_meter(gpu)))
        return;
    if (meter_is_capturing(launch->stream, launch->per_thread) ||
        DRIVER(cuCtxGetCurrent, &context) != CUDA_SUCCESS)
        return;
    launch->meter = opening.meter;
    opening.at = batch_place(context, launch->stream, launch->per_thread);
    if (pass == GOVERNOR_PASS_MARK)
        mark_free(opening.meter, launch, &opening.at);
    if (pass != GOVERNOR_PASS_METERED &&
        !governor_member_class_is_metered(gpu->member, launch->class))
        return;
    if (!join_batch(launch, &opening))
        begin_own_batch(launch, &opening);
}

bool meter_before(struct launch *launch)
{
    struct gpu *gpu = gpu_current();
    enum governor_pass pass;

    launch->batch = NULL;
    if (!gpu)
        return true;
    if (!gpu->member)
        return false;
    pass = governor_member_pass(gpu->member, launch->class);
    if (pass != GOVERNOR_PASS_METERED)
        ++*unmarked_on(gpu, launch);
    if (pass != GOVERNOR_PASS_FREE)
        before_not_free(gpu, launch, pass);
    return true;
}

/* True if it is part of an open batch now, or of a graph. */
static bool join_small(struct gpu *gpu, struct launch *launch)
{
    struct meter *meter = atomic_load_explicit(&gpu->meter, memory_order_acquire);
    struct batch *batch;
    CUcontext context;
    struct place at;

    if (!meter || DRIVER(cuCtxGetCurrent, &context) != CUDA_SUCCESS)
        return false;
    if (meter_is_capturing(launch->stream, launch->per_thread))
        return true;
    at = batch_place(context, launch->stream, launch->per_thread);
    launch->key = key_of(launch);
    launch->estimate_ns = launch->guess_ns;
    launch->is_known = true;
    launch->meter = meter;
    pthread_mutex_lock(&meter->lock);
    batch = batch_find(meter->open, &at);
    if (batch && clock_now() >= batch->work.submitted_at + STALE_NS)
        batch = NULL;
    launch->batch = batch;
    if (batch)
        batch->pending++;
    pthread_mutex_unlock(&meter->lock);
    return batch;
}

bool meter_owe(struct gpu *gpu, struct launch *launch)
{
    _Atomic uint64_t *owed = &gpu->owed[launch->class];

    if (join_small(gpu, launch))
        return true;
    if (atomic_load_explicit(owed, memory_order_relaxed) >= BATCH_NS)
        return false;
    atomic_fetch_add_explicit(owed, launch->guess_ns, memory_order_relaxed);
    return true;
}

/* It was launched for nothing: nobody launches in it any more. */
static void drop_batch(struct meter *meter, struct batch *batch)
{
    governor_member_cancel(meter->gpu->member, batch->work.debit);
    batch_discard(meter, batch);
}

/*
 * Under the lock, which is released meanwhile: an event behind the last launch of an open batch,
 * whose thread may make no more calls. Whoever closes it with an event of its own needs none.
 */
static struct stamp *record_early(struct meter *meter, struct batch *batch)
{
    const struct place at = batch->at;
    CUcontext context = batch->made_in;
    struct stamp *stamp, *before;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    pthread_mutex_unlock(&meter->lock);
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    stamp = stamp_record(meter, context, &at);
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    pthread_mutex_lock(&meter->lock);
    /* It has ended with its context. */
    if (stamp && batch->gone)
        stamp->event = NULL;
    if (!stamp || batch->gone)
        return stamp;
    before = batch->end;
    batch->end = stamp;
    return before;
}

typedef void (*batch_rest)(struct meter *meter, struct batch *batch);

/*
 * Under the lock: what is left to do with the batch after one of its launches, without the lock.
 * If it was closed meanwhile, its end comes behind the last launch that was on its way.
 */
static batch_rest settle_batch(struct meter *meter, struct batch *batch, bool is_full)
{
    batch->pending--;
    if (!batch->taken && is_full)
        return batch_take_out(meter, batch) ? batch_close : NULL;
    if (!batch->taken && !batch->launches && !batch->pending) {
        batch_unlink(&meter->open, batch);
        return drop_batch;
    }
    if (!batch->taken || batch->pending)
        return NULL;
    if (batch->retired)
        return batch_discard;
    /* The thread that sees ends has it in its hands, or will have. */
    if (batch->left && (batch->closing || !batch->gone))
        return NULL;
    return batch->gone || batch->unseen ? batch_close_unseen : batch_close;
}

static void owe_launch(struct meter *meter, const struct launch *launch)
{
    atomic_fetch_add_explicit(&meter->gpu->owed[launch->class], launch->estimate_ns,
                              memory_order_relaxed);
}

/*
 * Under the lock: the begin of a launch that its batch has left behind. False: its context has
 * ended, or may be ending: it is owed.
 */
static bool begin_late(struct meter *meter, const struct launch *launch, const struct batch *batch,
                       struct late_begin *late)
{
    if (batch->gone || batch->at.context != batch->made_in) {
        owe_launch(meter, launch);
        return false;
    }
    *late = (struct late_begin){batch->at, batch->closing ? NULL : batch->end, batch->launched_ns};
    if (late->stamp)
        late->stamp->uses++;
    return true;
}

/*
 * It has a batch of its own, or could be as long as it likes for its estimate: a program can hold a
 * thread up on its way to the driver, by a signal. False: it is owed. There is no memory, or the
 * stream captures by now, and an event of ours would be a part of the graph.
 */
static bool charge_late(struct meter *meter, struct launch *launch, const struct late_begin *late)
{
    const struct governor_work work = {.class = launch->class, .estimate_ns = launch->estimate_ns};

    if (!meter_is_capturing(late->place.stream, late->place.per_thread) &&
        open_batch(meter, launch, &late->place, &work, late))
        return true;
    stamp_put(meter, late->stamp);
    owe_launch(meter, launch);
    return false;
}

/*
 * Under the lock, which is released: the launch was the last one of its batch, or failed, or came
 * late, or its thread may make no more calls.
 */
static void settle_launch(struct launch *launch, bool succeeded, bool is_full)
{
    struct meter *meter = launch->meter;
    struct batch *batch = launch->batch;
    struct late_begin late;
    struct stamp *before = NULL;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    batch_rest rest;
    bool came_late = succeeded && batch->left && begin_late(meter, launch, batch, &late);

    if (batch->at.thread && !is_full && batch->launches && !batch->taken &&
        batch->launched_ns < meter->unseen_until)
        before = record_early(meter, batch);
    rest = settle_batch(meter, batch, is_full);
    pthread_mutex_unlock(&meter->lock);
    if (before)
        stamp_put(meter, before);
    if (!rest && !came_late)
        return;
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    if (rest)
        rest(meter, batch);
    if (came_late)
        came_late = charge_late(meter, launch, &late);
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    if (came_late)
        meter_launched(launch, true);
}

void meter_launched(struct launch *launch, bool succeeded)
{
    struct meter *meter = launch->meter;
    struct batch *batch = launch->batch;
    bool is_full = false;

    pthread_mutex_lock(&meter->lock);
    if (succeeded && !batch->left) {
        batch->mixed |= batch->launches && batch->key != launch->key;
        batch->key = launch->key;
        batch->launches++;
        batch->launched_ns = clock_now();
        batch->work.estimate_ns += launch->estimate_ns;
        is_full = !launch->is_known || batch->work.estimate_ns >= batch->most_ns;
    }
    if (!succeeded || is_full || batch->taken || batch->at.thread) {
        settle_launch(launch, succeeded, is_full);
        return;
    }
    batch->pending--;
    pthread_mutex_unlock(&meter->lock);
}
