// SPDX-License-Identifier: MIT
#include "batch.h"

#include <stdlib.h>

#include "real.h"

static CUevent take_event(struct meter *meter, CUcontext context)
{
    CUevent event = NULL;

    for (unsigned int i = 0; i < meter->spare_count; i++) {
        if (meter->spares[i].context != context)
            continue;
        event = meter->spares[i].event;
        meter->spares[i] = meter->spares[--meter->spare_count];
        return event;
    }
    return DRIVER(cuEventCreate, &event, 0) == CUDA_SUCCESS ? event : NULL;
}

void batch_give_event(struct meter *meter, CUcontext context, CUevent event)
{
    if (!event)
        return;
    if (meter->spare_count < SPARES_MOST)
        meter->spares[meter->spare_count++] = (struct spare){context, event};
    else
        DRIVER(cuEventDestroy_v2, event);
}

CUevent batch_record(struct meter *meter, const struct batch *batch)
{
    CUevent event = take_event(meter, batch->context);
    CUresult result;

    if (!event)
        return NULL;
    if (batch->per_thread)
        result = DRIVER(cuEventRecord_ptsz, event, batch->stream);
    else
        result = DRIVER(cuEventRecord, event, batch->stream);
    if (result == CUDA_SUCCESS)
        return event;
    batch_give_event(meter, batch->context, event);
    return NULL;
}

static void unlink_from(struct batch **list, const struct batch *batch)
{
    while (*list != batch)
        list = &(*list)->next;
    *list = batch->next;
}

static void discard(struct meter *meter, struct batch *batch)
{
    batch_give_event(meter, batch->context, batch->begin);
    batch_give_event(meter, batch->context, batch->end);
    free(batch);
}

void batch_give_up(struct meter *meter, struct batch **list, struct batch *batch)
{
    unlink_from(list, batch);
    governor_member_end(meter->gpu->member, batch->debit, batch->sum_ns);
    discard(meter, batch);
}

void batch_close(struct meter *meter, struct batch *batch)
{
    struct batch **last = &meter->ended;

    batch->end = batch_record(meter, batch);
    if (!batch->end) {
        batch_give_up(meter, &meter->open, batch);
        return;
    }
    unlink_from(&meter->open, batch);
    batch->next = NULL;
    while (*last)
        last = &(*last)->next;
    *last = batch;
    pthread_cond_signal(&meter->work);
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
static uint64_t measure(const struct meter *meter, const struct batch *batch, uint64_t now)
{
    CUevent last = meter->last.context == batch->context ? meter->last.event : NULL;
    uint64_t from = batch->opened_ns > meter->seen_ns ? batch->opened_ns : meter->seen_ns;
    uint64_t others_end = batch->opened_ns + batch->behind_ns;
    uint64_t ns = least(between(batch->begin, batch->end), between(last, batch->end));
    uint64_t own = now > others_end ? now - others_end : 0;

    if (ns == UINT64_MAX)
        ns = now > from ? now - from : 0;
    if (!batch->behind_ns)
        return ns;
    return least(ns, own > batch->sum_ns ? own : batch->sum_ns);
}

void batch_retire(struct meter *meter, struct batch *batch)
{
    uint64_t now = batch_now();
    uint64_t ns = measure(meter, batch, now);
    bool is_later = meter->last.context != batch->context || !meter->last.event ||
                    between(meter->last.event, batch->end) > 0;

    unlink_from(&meter->ended, batch);
    governor_member_end(meter->gpu->member, batch->debit, ns);
    if (!batch->mixed && !batch->behind_ns)
        costs_learn(&meter->costs, batch->key, ns / batch->launches);
    if (is_later) {
        batch_give_event(meter, meter->last.context, meter->last.event);
        meter->last = (struct spare){batch->context, batch->end};
        batch->end = NULL;
    }
    meter->seen_ns = now;
    discard(meter, batch);
}
