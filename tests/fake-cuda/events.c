// SPDX-License-Identifier: MIT
/* Events: their record is a point of a stream, which costs some time of it. */
#include "timing.h"

#include <stdlib.h>

#include "card.h"

/* Times of events are no more exact than this. */
#define RESOLUTION_NS 500u

void (*fake_before_record)(CUstream stream);
void (*fake_before_query)(void);

/* Under the lock. NULL: it is none. */
static struct timing_event *event_of(struct timing *timing, CUevent event)
{
    uintptr_t number = (uintptr_t)event;
    struct timing_event *found;

    if (!number || number > TIMING_EVENTS)
        return NULL;
    found = &timing->events[number - 1];
    if (!found->used || found->runner != timing_self(timing))
        return NULL;
    /* Whoever uses one that ended with its context may crash the driver. */
    if (found->ended)
        abort();
    return found;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    static _Atomic unsigned int last;
    unsigned int at = last, tries = 0;
    struct timing *timing;

    ENTER();
    (void)flags;
    timing = timing_enter();
    while (timing->events[at].used && ++tries < TIMING_EVENTS)
        at = (at + 1) % TIMING_EVENTS;
    if (tries < TIMING_EVENTS)
        timing->events[at] = (struct timing_event){
            .used = true, .runner = timing_self(timing), .context = (uintptr_t)fake_current()};
    timing_leave(timing);
    last = at;
    capture_forget(at);
    *event = (CUevent)(uintptr_t)(at + 1);
    return tries < TIMING_EVENTS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* As the driver, it refuses an event of another context. */
static CUresult check(CUevent event, CUstream stream, bool per_thread)
{
    struct timing *timing = timing_enter();
    const struct timing_event *found = event_of(timing, event);
    uint32_t at = timing_stream_of(timing, stream, per_thread);
    bool fits = found && found->context == timing->streams[at].context;

    timing_leave(timing);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult record(CUevent event, CUstream stream, bool per_thread)
{
    const struct model_op op = {.kind = TIMING_EVENT,
                                .engine = MODEL_COMPUTE,
                                .length_ns = TIMING_EVENT_NS,
                                .data = {(uintptr_t)event - 1}};
    CUresult result = check(event, stream, per_thread);

    if (result != CUDA_SUCCESS)
        return result;
    if (fake_before_record)
        fake_before_record(stream);
    return timing_submit(stream, per_thread, &op);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    ENTER();
    return record(event, stream, false);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    ENTER();
    return record(event, stream, true);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    ENTER();
    (void)flags;
    return record(event, stream, false);
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags)
{
    ENTER();
    (void)flags;
    return record(event, stream, true);
}

static CUresult ask(CUevent event)
{
    struct timing *timing = timing_enter();
    const struct timing_event *found = event_of(timing, event);
    CUresult result = (CUresult)timing->runners[timing_self(timing)].error;

    if (!found)
        result = CUDA_ERROR_INVALID_HANDLE;
    else if (!result && found->number && !found->at)
        result = CUDA_ERROR_NOT_READY;
    timing_leave(timing);
    return result;
}

CUresult cuEventQuery(CUevent event)
{
    CUresult result;

    ENTER();
    result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (fake_before_query)
        fake_before_query();
    return ask(event);
}

CUresult cuEventSynchronize(CUevent event)
{
    CUresult result;

    ENTER();
    result = capture_unsafe();
    while (result == CUDA_SUCCESS) {
        result = ask(event);
        if (result != CUDA_ERROR_NOT_READY)
            return result;
        timing_sleep(50000);
        result = CUDA_SUCCESS;
    }
    return result;
}

static double rounded(uint64_t at)
{
    return (double)(at / RESOLUTION_NS * RESOLUTION_NS);
}

CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end)
{
    struct timing *timing;
    const struct timing_event *first, *last;
    CUresult result = CUDA_SUCCESS;

    ENTER();
    timing = timing_enter();
    first = event_of(timing, begin);
    last = event_of(timing, end);
    if (!first || !last || !first->number || !last->number)
        result = CUDA_ERROR_INVALID_HANDLE;
    else if (!first->at || !last->at)
        result = CUDA_ERROR_NOT_READY;
    else
        *ms = (float)((rounded(last->at) - rounded(first->at)) / 1e6);
    timing_leave(timing);
    return result;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    struct timing *timing;
    struct timing_event *found;

    ENTER();
    timing = timing_enter();
    found = event_of(timing, event);
    if (found)
        found->used = false;
    timing_leave(timing);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult wait(CUstream stream, bool per_thread, CUevent event)
{
    struct timing *timing;
    const struct timing_event *found;
    struct model_op op = {.kind = TIMING_WAIT_EVENT, .engine = MODEL_NONE};

    if (capture_waits(stream, per_thread, (unsigned int)(uintptr_t)event - 1))
        return CUDA_SUCCESS;
    timing = timing_enter();
    found = event_of(timing, event);
    if (found && found->number) {
        op.data[0] = found->stream;
        op.data[1] = found->number;
    }
    timing_leave(timing);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    return op.data[1] ? timing_submit(stream, per_thread, &op) : CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    ENTER();
    (void)flags;
    return wait(stream, false, event);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
    ENTER();
    (void)flags;
    return wait(stream, true, event);
}
