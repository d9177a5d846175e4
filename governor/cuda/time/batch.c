// SPDX-License-Identifier: MIT
#include "batch.h"

#include <stdlib.h>

#include "real.h"

/* Of those that are kept; NULL: none is of this context. */
static CUevent take_spare(struct meter *meter, CUcontext context)
{
    CUevent event = NULL;

    pthread_mutex_lock(&meter->lock);
    for (unsigned int i = 0; i < meter->spare_count && !event; i++) {
        if (meter->spares[i].context != context)
            continue;
        event = meter->spares[i].event;
        meter->spares[i] = meter->spares[--meter->spare_count];
    }
    pthread_mutex_unlock(&meter->lock);
    return event;
}

static CUevent take_event(struct meter *meter, CUcontext context)
{
    CUevent event = take_spare(meter, context);

    if (event)
        return event;
    return DRIVER(cuEventCreate, &event, 0) == CUDA_SUCCESS ? event : NULL;
}

void batch_give_event(struct meter *meter, CUcontext context, CUevent event)
{
    bool is_kept;

    if (!event)
        return;
    pthread_mutex_lock(&meter->lock);
    is_kept = meter->spare_count < SPARES_MOST;
    if (is_kept)
        meter->spares[meter->spare_count++] = (struct spare){context, event};
    pthread_mutex_unlock(&meter->lock);
    /* One that may be ending with its context is left to that. */
    if (!is_kept && context != batch_aside(meter))
        DRIVER(cuEventDestroy_v2, event);
}

CUevent batch_record(struct meter *meter, CUcontext context, CUstream stream, bool per_thread)
{
    CUevent event = take_event(meter, context);
    CUresult result;

    if (!event)
        return NULL;
    if (per_thread)
        result = DRIVER(cuEventRecord_ptsz, event, stream);
    else
        result = DRIVER(cuEventRecord, event, stream);
    if (result == CUDA_SUCCESS)
        return event;
    batch_give_event(meter, context, event);
    return NULL;
}

struct batch *batch_find_open(struct meter *meter, const struct launch *launch, CUcontext context)
{
    uint64_t thread = meter_thread_of(launch->stream, launch->per_thread);
    struct batch *batch = meter->open;

    while (batch && (batch->context != context || batch->stream != launch->stream ||
                     batch->per_thread != launch->per_thread || batch->thread != thread))
        batch = batch->next;
    return batch;
}

void batch_unlink(struct batch **list, const struct batch *batch)
{
    while (*list != batch)
        list = &(*list)->next;
    *list = batch->next;
}

void batch_discard(struct meter *meter, struct batch *batch)
{
    batch_give_event(meter, batch->context, batch->begin);
    batch_give_event(meter, batch->context, batch->end);
    free(batch);
}

void batch_take_out(struct meter *meter, struct batch *batch)
{
    struct batch **last = &meter->ended;

    batch_unlink(&meter->open, batch);
    batch->next = NULL;
    batch->closing = true;
    batch->closed_ns = batch_now();
    while (*last)
        last = &(*last)->next;
    *last = batch;
}

static void close_with(struct meter *meter, struct batch *batch, CUevent end)
{
    bool is_gone;

    pthread_mutex_lock(&meter->lock);
    batch->end = end;
    batch->closing = false;
    is_gone = batch->gone;
    pthread_cond_broadcast(&meter->work);
    pthread_mutex_unlock(&meter->lock);
    if (!is_gone)
        return;
    /* Its events ended with its context. */
    work_end(meter->gpu, batch->class, batch->debit, batch->sum_ns);
    free(batch);
}

/*
 * Another thread may launch on the same stream before this is recorded. Such a launch counts with
 * this batch, and the next batch counts from here: together they are charged what they took.
 */
void batch_close(struct meter *meter, struct batch *batch)
{
    close_with(meter, batch, batch_record(meter, batch->made_in, batch->stream, batch->per_thread));
}

void batch_close_unseen(struct meter *meter, struct batch *batch)
{
    close_with(meter, batch, NULL);
}

/* UINT64_MAX: the driver does not say. An end before the other's is of no time of its own. */
static uint64_t between(CUevent begin, CUevent end)
{
    float ms = 0;

    if (!begin || DRIVER(cuEventElapsedTime, &ms, begin, end) != CUDA_SUCCESS)
        return UINT64_MAX;
    return ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/*
 * From when the GPU was free for it, so that what several streams do at once counts once. What
 * others had submitted before is theirs, as far as the host's clock can tell.
 */
static uint64_t measure(const struct meter *meter, const struct batch *batch, CUevent end,
                        uint64_t now)
{
    CUevent last = meter->last.context == batch->context ? meter->last.event : NULL;
    uint64_t from = batch->opened_ns > meter->seen_ns ? batch->opened_ns : meter->seen_ns;
    uint64_t others_end = batch->opened_ns + batch->behind_ns;
    uint64_t ns = least(between(batch->begin, end), between(last, end));
    uint64_t own = now > others_end ? now - others_end : 0;

    if (ns == UINT64_MAX)
        ns = now > from ? now - from : 0;
    if (!batch->behind_ns)
        return ns;
    return least(ns, own > batch->sum_ns ? own : batch->sum_ns);
}

/*
 * When @end was, by the host's clock. It is where the next one's time begins, unless a later one
 * was seen before.
 */
static uint64_t remember_end(struct meter *meter, struct batch *batch, CUevent end, uint64_t now)
{
    bool is_known = meter->last.context == batch->context && meter->last.event;
    float ms = 0;
    uint64_t at;

    if (is_known && DRIVER(cuEventElapsedTime, &ms, meter->last.event, end) != CUDA_SUCCESS)
        is_known = false;
    if (!is_known)
        event_clock_restart(&meter->clock);
    at = event_clock_see(&meter->clock, (double)ms * 1e6, now);
    if (is_known && ms <= 0)
        return at;
    event_clock_advance(&meter->clock, (double)ms * 1e6);
    batch_give_event(meter, meter->last.context, meter->last.event);
    meter->last = (struct spare){batch->context, end};
    batch->end = NULL;
    return at;
}

/*
 * The program took much longer to launch than the work should take. So the GPU has waited in
 * between, and nobody knows how long.
 */
static bool is_sparse(const struct batch *batch)
{
    return batch->closed_ns - batch->opened_ns > 2 * batch->sum_ns + SPARSE_NS;
}

void batch_retire(struct meter *meter, struct batch *batch, CUevent end)
{
    uint64_t now = batch_now(), end_at = 0;
    uint64_t ns = end ? measure(meter, batch, end, now) : batch->sum_ns;
    bool sparse = is_sparse(batch);
    bool passed = governor_member_passes(meter->gpu->member, batch->class) != batch->passes;

    if (sparse)
        ns = least(ns, 2 * batch->sum_ns);

    pthread_mutex_lock(&meter->lock);
    batch_unlink(&meter->ended, batch);
    if (end && !sparse && !passed && !batch->mixed && !batch->behind_ns && batch->launches)
        costs_learn(&meter->costs, batch->key, ns / batch->launches);
    pthread_mutex_unlock(&meter->lock);
    if (end)
        end_at = remember_end(meter, batch, end, now);
    /* Nobody knows when in all that time it ran. */
    if (sparse || !end)
        work_end(meter->gpu, batch->class, batch->debit, ns);
    else
        work_ran(meter->gpu, batch->class, batch->debit, end_at - ns, end_at);
    meter->seen_ns = now;
    batch_discard(meter, batch);
}
