// SPDX-License-Identifier: MIT
/* Batches end before they are full: their stream is waited for, or ends, or their context does. */
#include <stdlib.h>

#include "batch.h"
#include "join.h"
#include "meter.h"
#include "real.h"

/* Under the lock: one in which something was launched, and that close_batches() is to close. */
static struct batch *find_to_close(struct meter *meter, const struct place *at, CUcontext context)
{
    struct batch *batch = meter->open;

    while (batch && (!batch->launches || batch->at.context != context ||
                     (at && !batch_same_place(&batch->at, at))))
        batch = batch->next;
    return batch;
}

/*
 * It has the end that this thread records; or none, if the stream is another thread's, or captures:
 * then an event of ours would be a part of the graph.
 */
static void close_one(struct meter *meter, struct batch *batch)
{
    const struct place *at = &batch->at;
    struct place own = batch_place(at->context, at->stream, at->per_thread);

    if (own.thread == at->thread && !meter_is_capturing(at->stream, at->per_thread))
        batch_close(meter, batch);
    else
        batch_close_unseen(meter, batch);
}

/* @at: NULL: all of the context's streams. */
static void close_batches(struct meter *meter, const struct place *at, CUcontext context)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct batch *batch;
    bool is_own;

    if (at && meter_is_capturing(at->stream, at->per_thread))
        return;
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    for (;;) {
        pthread_mutex_lock(&meter->lock);
        batch = find_to_close(meter, at, context);
        is_own = batch && batch_take_out(meter, batch);
        pthread_mutex_unlock(&meter->lock);
        if (is_own)
            close_one(meter, batch);
        else if (!batch)
            break;
    }
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
}

/*
 * Of the calling thread's GPU; NULL: it has none yet, or no context. @context: as in meter.h; the
 * thread's own in its place.
 */
static struct meter *meter_current(CUcontext *context)
{
    struct gpu *gpu = gpu_current();
    struct meter *meter = gpu ? atomic_load_explicit(&gpu->meter, memory_order_acquire) : NULL;

    if (!meter || (!*context && DRIVER(cuCtxGetCurrent, context) != CUDA_SUCCESS))
        return NULL;
    return meter;
}

/*
 * What comes later on these streams may begin later than what was launched so far ends. @at: NULL:
 * all of the context's. True: some batch is open.
 */
static bool set_apart(struct meter *meter, const struct place *at, CUcontext context)
{
    bool has_open;

    pthread_mutex_lock(&meter->lock);
    for (struct batch *batch = meter->ended; batch; batch = batch->next)
        batch->is_apart |=
            batch->at.context == context && (!at || batch_same_place(&batch->at, at));
    has_open = meter->open != NULL;
    pthread_mutex_unlock(&meter->lock);
    return has_open;
}

/* The same for those that are open, which end. */
static void close_and_set_apart(struct meter *meter, const struct place *at, CUcontext context)
{
    if (!set_apart(meter, at, context))
        return;
    close_batches(meter, at, context);
    set_apart(meter, at, context);
}

void meter_close(CUstream stream, bool per_thread)
{
    CUcontext context = NULL;
    struct meter *meter = meter_current(&context);
    struct place at;

    if (!meter)
        return;
    at = batch_place(context, stream, per_thread);
    close_and_set_apart(meter, &at, context);
}

static bool is_closing(const struct meter *meter, const struct place *at)
{
    for (const struct batch *batch = meter->ended; batch; batch = batch->next)
        if (batch->closing && batch_same_place(&batch->at, at))
            return true;
    return false;
}

void meter_leave(CUstream stream, bool per_thread)
{
    CUcontext context = NULL;
    struct meter *meter = meter_current(&context);
    struct place at;

    if (!meter)
        return;
    at = batch_place(context, stream, per_thread);
    close_and_set_apart(meter, &at, context);
    pthread_mutex_lock(&meter->lock);
    while (is_closing(meter, &at))
        pthread_cond_wait(&meter->work, &meter->lock);
    pthread_mutex_unlock(&meter->lock);
}

static void close_all_on(struct gpu *gpu, void *context)
{
    struct meter *meter = atomic_load_explicit(&gpu->meter, memory_order_acquire);

    if (meter)
        close_and_set_apart(meter, NULL, context);
}

void meter_close_all(CUcontext context)
{
    CUcontext own = NULL;
    struct meter *meter = meter_current(&own);

    if (!context || context == own) {
        if (meter)
            close_and_set_apart(meter, NULL, own);
        return;
    }
    /* Of any GPU. Its streams' events are made and recorded in the context itself. */
    if (DRIVER(cuCtxGetCurrent, &own) != CUDA_SUCCESS ||
        DRIVER(cuCtxSetCurrent, context) != CUDA_SUCCESS)
        return;
    gpu_each(close_all_on, context);
    DRIVER(cuCtxSetCurrent, own);
}

static bool is_in_hands(const struct meter *meter, CUstream stream)
{
    for (const struct batch *batch = meter->ended; batch; batch = batch->next)
        if (batch->closing && batch->at.stream == stream)
            return true;
    return false;
}

/* Of any GPU and context: a stream is destroyed by its handle alone. */
static void stream_ends_on(struct gpu *gpu, void *stream)
{
    struct meter *meter = atomic_load_explicit(&gpu->meter, memory_order_acquire);
    struct batch *batch, *next;

    if (!meter)
        return;
    pthread_mutex_lock(&meter->lock);
    while (is_in_hands(meter, stream))
        pthread_cond_wait(&meter->work, &meter->lock);
    for (batch = meter->open; batch; batch = next) {
        next = batch->next;
        if (batch->at.stream != stream)
            continue;
        /* Without an end of its own, it is charged by the estimates. */
        batch->unseen = true;
        batch->closing = !batch_take_out(meter, batch);
    }
    pthread_cond_broadcast(&meter->work);
    pthread_mutex_unlock(&meter->lock);
}

void meter_stream_ends(CUstream stream)
{
    if (!stream)
        return;
    meter_close(stream, false);
    meter_close(stream, true);
    gpu_each(stream_ends_on, stream);
}

/* It has ended with its context. */
static void forget_event(struct stamp *stamp)
{
    if (stamp)
        stamp->event = NULL;
}

/*
 * Out of @list those of @context, into @taken, but for those that another thread has in its hands,
 * or launches in: it frees them.
 */
static void take_all(struct batch **list, CUcontext context, struct batch **taken)
{
    struct batch *batch, *next;

    for (batch = *list; batch; batch = next) {
        next = batch->next;
        if (batch->at.context != context)
            continue;
        batch_unlink(list, batch);
        batch->taken = batch->gone = true;
        forget_event(batch->begin);
        forget_event(batch->end);
        if (batch->closing || batch->pending)
            continue;
        batch->next = *taken;
        *taken = batch;
    }
}

static void forget_spares(struct meter *meter, CUcontext context)
{
    struct stamp **at = &meter->spares;

    while (*at) {
        struct stamp *stamp = *at;

        if (stamp->context != context) {
            at = &stamp->next;
            continue;
        }
        *at = stamp->next;
        meter->spare_count--;
        free(stamp);
    }
}

/* The clock of its events is to be given to stamp_put(); NULL: there is none. */
static struct stamp *forget_events(struct meter *meter, CUcontext context)
{
    struct stamp *last = NULL;

    forget_spares(meter, context);
    for (unsigned int i = 0; i < meter->mark_count; i++)
        if (meter->marks[i].stamp->context == context)
            forget_event(meter->marks[i].stamp);
    for (unsigned int i = 0; i < CLOCKS; i++) {
        if (!meter->clocks[i].last || meter->clocks[i].last->context != context)
            continue;
        last = meter->clocks[i].last;
        forget_event(last);
        meter->clocks[i] = (struct context_clock){0};
    }
    return last;
}

static struct meter *meter_if_any(struct gpu *gpu, CUcontext context)
{
    return context ? atomic_load_explicit(&gpu->meter, memory_order_acquire) : NULL;
}

void meter_context_ends(struct gpu *gpu, CUcontext context)
{
    struct meter *meter = meter_if_any(gpu, context);
    struct batch *taken = NULL, *next;
    struct stamp *last;

    if (!meter)
        return;
    pthread_mutex_lock(&meter->looks);
    pthread_mutex_lock(&meter->lock);
    take_all(&meter->open, context, &taken);
    take_all(&meter->ended, context, &taken);
    last = forget_events(meter, context);
    pthread_mutex_unlock(&meter->lock);
    stamp_put(meter, last);
    for (; taken; taken = next) {
        next = taken->next;
        batch_charge(meter, &taken->work, taken->work.estimate_ns, 0);
        batch_discard(meter, taken);
    }
    pthread_mutex_unlock(&meter->looks);
}

static void rename_stamp(struct stamp *stamp, CUcontext from, CUcontext to)
{
    if (stamp && stamp->context == from)
        stamp->context = to;
}

static void rename_batches(struct batch *list, CUcontext from, CUcontext to)
{
    for (struct batch *batch = list; batch; batch = batch->next) {
        if (batch->at.context == from)
            batch->at.context = to;
        rename_stamp(batch->begin, from, to);
        rename_stamp(batch->end, from, to);
    }
}

static void rename_context(struct meter *meter, CUcontext from, CUcontext to)
{
    pthread_mutex_lock(&meter->looks);
    pthread_mutex_lock(&meter->lock);
    rename_batches(meter->open, from, to);
    rename_batches(meter->ended, from, to);
    for (struct stamp *stamp = meter->spares; stamp; stamp = stamp->next)
        rename_stamp(stamp, from, to);
    for (unsigned int i = 0; i < CLOCKS; i++)
        rename_stamp(meter->clocks[i].last, from, to);
    for (unsigned int i = 0; i < meter->mark_count; i++)
        rename_stamp(meter->marks[i].stamp, from, to);
    pthread_mutex_unlock(&meter->lock);
    pthread_mutex_unlock(&meter->looks);
}

void meter_set_aside(struct gpu *gpu, CUcontext context)
{
    struct meter *meter = meter_if_any(gpu, context);

    if (meter)
        rename_context(meter, context, batch_aside(meter));
}

void meter_take_back(struct gpu *gpu, CUcontext context, bool is_over)
{
    struct meter *meter = meter_if_any(gpu, context);

    if (!meter)
        return;
    if (!is_over) {
        rename_context(meter, batch_aside(meter), context);
        return;
    }
    meter_context_ends(gpu, batch_aside(meter));
    meter_context_ends(gpu, context);
}
