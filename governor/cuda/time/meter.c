// SPDX-License-Identifier: MIT
#include "meter.h"

#include <stdlib.h>

#include "batch.h"
#include "real.h"

static void relax(CUstreamCaptureMode *mode)
{
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    DRIVER(cuThreadExchangeStreamCaptureMode, mode);
}

/*
 * Our own calls of the driver would end a capture of another thread that forbids such calls, unless
 * this thread says that it knows what it does.
 */
static void enter(struct meter *meter, CUstreamCaptureMode *mode)
{
    relax(mode);
    pthread_mutex_lock(&meter->lock);
}

static void leave(struct meter *meter, CUstreamCaptureMode *mode)
{
    pthread_mutex_unlock(&meter->lock);
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
    pthread_mutex_init(&meter->lock, NULL);
    pthread_cond_init(&meter->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return meter;
}

static struct meter *meter_of(struct gpu *gpu)
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

static bool is_capturing(const struct launch *launch)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result;

    if (launch->per_thread)
        result = DRIVER(cuStreamIsCapturing_ptsz, launch->stream, &status);
    else
        result = DRIVER(cuStreamIsCapturing, launch->stream, &status);
    /* It fails for stream 0 while another captures: then a launch there fails, too. */
    return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static struct batch *find_open(struct meter *meter, const struct launch *launch, CUcontext context)
{
    struct batch *batch = meter->open;

    while (batch && (batch->context != context || batch->stream != launch->stream ||
                     batch->per_thread != launch->per_thread))
        batch = batch->next;
    return batch;
}

/* One that has room for the launch. A function without a measurement gets a batch of its own. */
static struct batch *find_fitting(struct meter *meter, const struct launch *launch,
                                  CUcontext context)
{
    struct batch *batch = find_open(meter, launch, context);

    if (!batch || (launch->ns && batch_now() < batch->opened_ns + STALE_NS))
        return batch;
    if (batch->launches)
        batch_close(meter, batch);
    return NULL;
}

static struct batch *open_batch(struct meter *meter, const struct launch *launch, CUcontext context,
                                uint64_t debit, bool deferred)
{
    struct batch *batch = reaper_start(meter) ? calloc(1, sizeof(*batch)) : NULL;

    if (!batch)
        return NULL;
    batch->id = ++meter->batches;
    batch->debit = debit;
    batch->unbegun = deferred;
    batch->context = context;
    batch->stream = launch->stream;
    batch->per_thread = launch->per_thread;
    batch->behind_ns = governor_member_behind_ns(meter->gpu->member);
    batch->opened_ns = batch_now();
    batch->begin = batch_record(meter, batch);
    batch->next = meter->open;
    meter->open = batch;
    pthread_cond_signal(&meter->work);
    return batch;
}

/* Work that cannot begin must not hold up what comes after: that may be what it waits for. */
static bool is_stuck(const struct meter *meter)
{
    for (const struct batch *batch = meter->ended; batch; batch = batch->next)
        if (batch->stuck)
            return true;
    return false;
}

/* Waits for the turn without the lock, which the end of the member's own work needs. */
static struct batch *begin(struct meter *meter, const struct launch *launch, CUcontext context)
{
    uint64_t estimate = !launch->ns ? UNKNOWN_NS : launch->ns > BATCH_NS ? launch->ns : BATCH_NS;
    bool deferred = is_stuck(meter);
    struct batch *batch;
    uint64_t debit;

    pthread_mutex_unlock(&meter->lock);
    debit = governor_member_begin(meter->gpu->member, estimate, deferred);
    pthread_mutex_lock(&meter->lock);
    batch = find_fitting(meter, launch, context);
    if (batch) {
        /* Another thread has opened one meanwhile. */
        governor_member_cancel(meter->gpu->member, debit);
        return batch;
    }
    batch = open_batch(meter, launch, context, debit, deferred);
    if (!batch)
        governor_member_end(meter->gpu->member, debit, launch->ns ? launch->ns : UNKNOWN_NS);
    return batch;
}

static void join_batch(struct launch *launch, struct meter *meter, CUcontext context)
{
    CUstreamCaptureMode mode;
    struct batch *batch;

    enter(meter, &mode);
    launch->ns = costs_of(&meter->costs, launch->key);
    batch = find_fitting(meter, launch, context);
    if (!batch)
        batch = begin(meter, launch, context);
    if (batch) {
        launch->meter = meter;
        launch->batch = batch->id;
    }
    leave(meter, &mode);
}

void meter_before(struct launch *launch)
{
    struct gpu *gpu = gpu_current();
    CUcontext context;
    struct meter *meter;

    launch->meter = NULL;
    if (!gpu || !gpu->member)
        return;
    if (!governor_member_is_metered(gpu->member)) {
        governor_member_count(gpu->member);
        return;
    }
    if (is_capturing(launch) || DRIVER(cuCtxGetCurrent, &context) != CUDA_SUCCESS)
        return;
    meter = meter_of(gpu);
    if (meter)
        join_batch(launch, meter, context);
}

static struct batch *find_by_id(const struct meter *meter, uint64_t id)
{
    struct batch *batch = meter->open;

    while (batch && batch->id != id)
        batch = batch->next;
    return batch;
}

static void add(struct meter *meter, struct batch *batch, const struct launch *launch)
{
    batch->mixed |= batch->launches && batch->key != launch->key;
    batch->key = launch->key;
    batch->launches++;
    batch->sum_ns += launch->ns ? launch->ns : UNKNOWN_NS;
    if (!launch->ns || batch->sum_ns >= BATCH_NS)
        batch_close(meter, batch);
}

CUresult meter_after(struct launch *launch, CUresult result)
{
    struct meter *meter = launch->meter;
    CUstreamCaptureMode mode;
    struct batch *batch;

    if (!meter)
        return result;
    enter(meter, &mode);
    /* Closed by another thread meanwhile, which uses the same stream: its end is after this. */
    batch = find_by_id(meter, launch->batch);
    if (batch && result == CUDA_SUCCESS)
        add(meter, batch, launch);
    else if (batch && !batch->launches)
        batch_give_up(meter, &meter->open, batch);
    leave(meter, &mode);
    return result;
}

static void end_all(struct meter *meter, struct batch **list, CUcontext context)
{
    struct batch *batch, *next;

    for (batch = *list; batch; batch = next) {
        next = batch->next;
        if (batch->context != context)
            continue;
        /* The events end with the context. */
        batch->begin = batch->end = NULL;
        batch_give_up(meter, list, batch);
    }
}

static void forget_events(struct meter *meter, CUcontext context)
{
    unsigned int kept = 0;

    for (unsigned int i = 0; i < meter->spare_count; i++)
        if (meter->spares[i].context != context)
            meter->spares[kept++] = meter->spares[i];
    meter->spare_count = kept;
    if (meter->last.context == context)
        meter->last = (struct spare){0};
}

void meter_context_ends(struct gpu *gpu, CUcontext context)
{
    struct meter *meter = gpu ? atomic_load_explicit(&gpu->meter, memory_order_acquire) : NULL;

    if (!meter || !context)
        return;
    pthread_mutex_lock(&meter->lock);
    end_all(meter, &meter->open, context);
    end_all(meter, &meter->ended, context);
    forget_events(meter, context);
    pthread_mutex_unlock(&meter->lock);
}
