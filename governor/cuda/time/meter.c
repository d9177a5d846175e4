// SPDX-License-Identifier: MIT
#include "meter.h"

#include <stdlib.h>

#include "batch.h"
#include "real.h"

void meter_relax(CUstreamCaptureMode *mode)
{
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    DRIVER(cuThreadExchangeStreamCaptureMode, mode);
}

void meter_unrelax(CUstreamCaptureMode *mode)
{
    DRIVER(cuThreadExchangeStreamCaptureMode, mode);
}

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

struct meter *meter_of(struct gpu *gpu)
{
    struct meter *meter = atomic_load_explicit(&gpu->meter, memory_order_acquire);

    if (meter)
        return meter;
    pthread_mutex_lock(&gpu->own_lock);
    if (!gpu->meter)
        gpu->meter = meter_new(gpu);
    meter = gpu->meter;
    pthread_mutex_unlock(&gpu->own_lock);
    return meter;
}

uint64_t meter_thread_of(CUstream stream, bool per_thread)
{
    static _Atomic uint64_t threads;
    static _Thread_local uint64_t number;

    if (stream != CU_STREAM_PER_THREAD && (stream || !per_thread))
        return 0;
    /* An address of the thread's would be another one's when it has ended. */
    if (!number)
        number = ++threads;
    return number;
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
 * Under the lock: one that has room for the launch. A function without a measurement gets a batch
 * of its own. @full: one that has not, and that the caller must close; or NULL.
 */
static struct batch *find_fitting(struct meter *meter, const struct launch *launch,
                                  CUcontext context, struct batch **full)
{
    struct batch *batch = batch_find_open(meter, launch, context);

    *full = NULL;
    if (!batch ||
        (launch->ns && batch->class == launch->class && batch_now() < batch->opened_ns + STALE_NS))
        return batch;
    if (batch->launches) {
        batch_take_out(meter, batch);
        *full = batch;
    }
    return NULL;
}

static bool is_of(const struct batch *batch, const struct launch *launch, CUcontext context)
{
    return batch->context == context && batch->stream == launch->stream &&
           batch->per_thread == launch->per_thread &&
           batch->thread == meter_thread_of(launch->stream, launch->per_thread);
}

/*
 * The stream of the launch cannot go on. What is launched there does not wait for room on the GPU:
 * it is behind what is stuck. But that is not without a bound, and other streams' work is measured
 * as ever.
 */
static bool is_stuck(const struct meter *meter, const struct launch *launch, CUcontext context)
{
    uint64_t deferred_ns = 0;
    bool stuck = false;

    for (const struct batch *batch = meter->ended; batch; batch = batch->next) {
        deferred_ns += batch->unbegun ? batch->sum_ns : 0;
        stuck |= batch->stuck && is_of(batch, launch, context);
    }
    return stuck && deferred_ns < DEFERRED_MOST_NS;
}

/* Whether the stream of the launch has work in flight. */
static bool is_in_flight(const struct meter *meter, const struct launch *launch, CUcontext context)
{
    for (const struct batch *batch = meter->ended; batch; batch = batch->next)
        if (is_of(batch, launch, context))
            return true;
    return false;
}

/* A launch that waits for its turn. */
struct pending {
    struct meter *meter;
    const struct launch *launch;
    CUcontext context;
};

static bool is_behind(void *data)
{
    const struct pending *pending = data;
    bool behind;

    pthread_mutex_lock(&pending->meter->lock);
    behind = is_in_flight(pending->meter, pending->launch, pending->context);
    pthread_mutex_unlock(&pending->meter->lock);
    return behind;
}

static struct batch *batch_new(struct meter *meter, const struct launch *launch, CUcontext context)
{
    struct batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        return NULL;
    batch->class = launch->class;
    batch->context = batch->made_in = context;
    batch->stream = launch->stream;
    batch->per_thread = launch->per_thread;
    batch->thread = meter_thread_of(launch->stream, launch->per_thread);
    batch->behind_ns = governor_member_class_behind_ns(meter->gpu->member, launch->class);
    batch->passes = governor_member_passes(meter->gpu->member, launch->class);
    batch->opened_ns = batch_now();
    batch->begin = batch_record(meter, context, launch->stream, launch->per_thread);
    return batch;
}

static void join_locked(struct meter *meter, struct launch *launch, const struct batch *batch)
{
    launch->meter = meter;
    launch->batch = batch->id;
}

/* True if the launch is part of a batch now; @batch is linked then, unless another fits. */
static bool open_batch(struct meter *meter, struct launch *launch, struct batch *batch,
                       struct batch **full)
{
    struct batch *other;
    bool is_open;

    pthread_mutex_lock(&meter->lock);
    other = find_fitting(meter, launch, batch->context, full);
    is_open = !other && reaper_start(meter);
    if (is_open) {
        batch->id = ++meter->batches;
        batch->shares_ns = meter->ends[batch->class].shares_ns;
        batch->next = meter->open;
        meter->open = batch;
        pthread_cond_signal(&meter->work);
    }
    if (other || is_open)
        join_locked(meter, launch, other ? other : batch);
    pthread_mutex_unlock(&meter->lock);
    return is_open;
}

static uint64_t estimate_of(const struct launch *launch)
{
    uint64_t ns = launch->ns ? launch->ns : launch->guess_ns;

    return ns ? ns : UNKNOWN_NS;
}

/* Waits for the turn of @work, and opens a batch, without the lock. */
static void begin(struct meter *meter, struct launch *launch, CUcontext context,
                  const struct governor_work *work)
{
    uint64_t debit = work_begin(meter->gpu, work);
    struct batch *batch = batch_new(meter, launch, context), *full = NULL;
    bool is_open;

    if (batch) {
        batch->debit = debit;
        batch->unbegun = work->deferred;
    }
    is_open = batch && open_batch(meter, launch, batch, &full);
    if (full)
        batch_close(meter, full);
    if (is_open)
        return;
    if (launch->meter)
        work_cancel(meter->gpu, debit);
    else
        work_end(meter->gpu, launch->class, debit, estimate_of(launch));
    if (batch)
        batch_discard(meter, batch);
}

static void join_batch(struct launch *launch, struct meter *meter)
{
    struct pending pending = {.meter = meter, .launch = launch};
    struct governor_work work = {
        .class = launch->class, .still_behind = is_behind, .data = &pending};
    struct batch *batch, *full;
    CUstreamCaptureMode mode;
    CUcontext context;

    if (DRIVER(cuCtxGetCurrent, &context) != CUDA_SUCCESS)
        return;
    pending.context = context;
    pthread_mutex_lock(&meter->lock);
    launch->ns = costs_of(&meter->costs, launch->key);
    batch = find_fitting(meter, launch, context, &full);
    if (batch)
        join_locked(meter, launch, batch);
    if (!batch) {
        work.estimate_ns = estimate_of(launch);
        if (launch->ns && work.estimate_ns < BATCH_NS)
            work.estimate_ns = BATCH_NS;
        work.deferred = is_stuck(meter, launch, context);
        work.behind = is_in_flight(meter, launch, context);
    }
    pthread_mutex_unlock(&meter->lock);
    if (batch)
        return;
    meter_relax(&mode);
    if (full)
        batch_close(meter, full);
    begin(meter, launch, context, &work);
    meter_unrelax(&mode);
}

bool meter_before(struct launch *launch)
{
    struct gpu *gpu = gpu_current();
    struct meter *meter;

    launch->meter = NULL;
    launch->gpu = NULL;
    if (!gpu)
        return true;
    if (!gpu->member)
        return false;
    /* backlog.c places markers of its own, without a thread that waits for them. */
    if (governor_member_pass(gpu->member, launch->class) != GOVERNOR_PASS_METERED) {
        launch->gpu = gpu;
        return true;
    }
    meter = meter_is_capturing(launch->stream, launch->per_thread) ? NULL : meter_of(gpu);
    if (!meter)
        return true;
    backlog_drop(meter, launch->class);
    join_batch(launch, meter);
    return true;
}

bool meter_join(struct gpu *gpu, struct launch *launch)
{
    struct meter *meter = atomic_load_explicit(&gpu->meter, memory_order_acquire);
    struct batch *batch;
    CUcontext context;

    if (!meter || DRIVER(cuCtxGetCurrent, &context) != CUDA_SUCCESS)
        return false;
    if (meter_is_capturing(launch->stream, launch->per_thread))
        return true;
    pthread_mutex_lock(&meter->lock);
    batch = batch_find_open(meter, launch, context);
    if (batch && batch_now() >= batch->opened_ns + STALE_NS)
        batch = NULL;
    if (batch)
        join_locked(meter, launch, batch);
    pthread_mutex_unlock(&meter->lock);
    launch->ns = launch->guess_ns;
    return batch;
}

static struct batch *find_by_id(const struct meter *meter, uint64_t id)
{
    struct batch *batch = meter->open;

    while (batch && batch->id != id)
        batch = batch->next;
    return batch;
}

/* True if it is full. */
static bool add(struct batch *batch, const struct launch *launch)
{
    batch->mixed |= batch->launches && batch->key != launch->key;
    batch->key = launch->key;
    batch->launches++;
    batch->launched_ns = batch_now();
    batch->sum_ns += estimate_of(launch);
    return !launch->ns || batch->sum_ns >= BATCH_NS;
}

/* It was launched for nothing: nobody launches in it any more. */
static void drop(struct meter *meter, struct batch *batch)
{
    CUstreamCaptureMode mode;

    meter_relax(&mode);
    work_cancel(meter->gpu, batch->debit);
    batch_discard(meter, batch);
    meter_unrelax(&mode);
}

static void after_measured(struct meter *meter, const struct launch *launch, bool succeeded)
{
    CUstreamCaptureMode mode;
    struct batch *batch;
    bool is_full = false, is_empty = false;

    pthread_mutex_lock(&meter->lock);
    /* Closed by another thread meanwhile, which uses the same stream: its end is after this. */
    batch = find_by_id(meter, launch->batch);
    if (batch && succeeded)
        is_full = add(batch, launch);
    else if (batch)
        is_empty = !batch->launches;
    if (is_full)
        batch_take_out(meter, batch);
    if (is_empty)
        batch_unlink(&meter->open, batch);
    pthread_mutex_unlock(&meter->lock);
    if (is_empty)
        drop(meter, batch);
    if (!is_full)
        return;
    meter_relax(&mode);
    batch_close(meter, batch);
    meter_unrelax(&mode);
}

CUresult meter_after(struct launch *launch, CUresult result)
{
    if (launch->meter)
        after_measured(launch->meter, launch, result == CUDA_SUCCESS);
    else if (launch->gpu && result == CUDA_SUCCESS)
        backlog_after(launch->gpu, launch->class, launch->stream, launch->per_thread);
    return result;
}
