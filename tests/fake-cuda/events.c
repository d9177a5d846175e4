// SPDX-License-Identifier: MIT
/*
 * Events: their record is a point of a stream, which costs some time of it. One that another
 * process made is known here by an event of its own, which says of which it is.
 */
#include "timing.h"

#include <stdlib.h>
#include <string.h>

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

/* Under the lock. NULL: it is another process's, which is gone. */
static struct timing_event *target_of(struct timing *timing, struct timing_event *event)
{
    struct timing_event *target;

    if (!event || !event->of)
        return event;
    target = &timing->events[event->of - 1];
    return target->used && target->serial == event->of_serial ? target : NULL;
}

enum { DISABLE_TIMING = 2, INTERPROCESS = 4, ALL_FLAGS = 7 };

static CUresult create(CUevent *event, const struct timing_event *of)
{
    static _Atomic unsigned int last;
    unsigned int at = last, tries = 0;
    struct timing *timing = timing_enter();
    struct timing_event made = *of;

    while (timing->events[at].used && ++tries < TIMING_EVENTS)
        at = (at + 1) % TIMING_EVENTS;
    made.used = true;
    made.runner = timing_self(timing);
    made.context = (uintptr_t)fake_current();
    made.serial = ++timing->event_serials;
    if (tries < TIMING_EVENTS)
        timing->events[at] = made;
    timing_leave(timing);
    last = at;
    capture_forget(at);
    *event = (CUevent)(uintptr_t)(at + 1);
    return tries < TIMING_EVENTS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* As documented: one for other processes has no times. */
CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    ENTER();
    if (!event || (flags & ~(unsigned int)ALL_FLAGS) ||
        ((flags & INTERPROCESS) && !(flags & DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    return create(event, &(struct timing_event){.flags = flags});
}

/* CUipcEventHandle. */
struct ipc_event {
    uint64_t serial;
    uint32_t at;
    char padding[52];
};

_Static_assert(sizeof(struct ipc_event) == 64, "CUipcEventHandle");

CUresult cuIpcGetEventHandle(struct ipc_event *handle, CUevent event)
{
    struct timing *timing;
    struct timing_event *found;

    ENTER();
    timing = timing_enter();
    found = event_of(timing, event);
    if (found && handle && (found->flags & INTERPROCESS)) {
        memset(handle, 0, sizeof(*handle));
        handle->serial = found->serial;
        handle->at = (uint32_t)(uintptr_t)event;
    } else {
        found = NULL;
    }
    timing_leave(timing);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuIpcOpenEventHandle(CUevent *event, struct ipc_event handle)
{
    const struct timing_event opened = {
        .flags = DISABLE_TIMING | INTERPROCESS, .of = handle.at, .of_serial = handle.serial};
    struct timing *timing;
    bool is_there;

    ENTER();
    if (!event || !handle.at || handle.at > TIMING_EVENTS)
        return CUDA_ERROR_INVALID_VALUE;
    timing = timing_enter();
    is_there =
        timing->events[handle.at - 1].used && timing->events[handle.at - 1].serial == handle.serial;
    timing_leave(timing);
    return is_there ? create(event, &opened) : CUDA_ERROR_INVALID_HANDLE;
}

/* As the driver, it refuses an event of another context. @at: which it is of all. */
static CUresult check(CUevent event, CUstream stream, bool per_thread, uint64_t *at)
{
    struct timing *timing = timing_enter();
    struct timing_event *found = event_of(timing, event), *target = target_of(timing, found);
    uint32_t on = timing_stream_of(timing, stream, per_thread);
    bool fits = target && found->context == timing->streams[on].context;

    *at = fits ? (uint64_t)(target - timing->events) : 0;
    timing_leave(timing);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult event_record(CUevent event, CUstream stream, bool per_thread)
{
    struct model_op op = {
        .kind = TIMING_EVENT, .engine = MODEL_COMPUTE, .length_ns = TIMING_EVENT_NS};
    CUresult result = check(event, stream, per_thread, &op.data[0]);

    if (result != CUDA_SUCCESS)
        return result;
    if (fake_before_record)
        fake_before_record(stream);
    return timing_submit(stream, per_thread, &op);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    ENTER();
    return event_record(event, stream, false);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    ENTER();
    return event_record(event, stream, true);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    ENTER();
    (void)flags;
    return event_record(event, stream, false);
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags)
{
    ENTER();
    (void)flags;
    return event_record(event, stream, true);
}

static CUresult ask(CUevent event)
{
    struct timing *timing = timing_enter();
    struct timing_event *found = event_of(timing, event);
    const struct timing_event *target = target_of(timing, found);
    CUresult result = (CUresult)timing->runners[timing_self(timing)].error;

    if (!found)
        result = CUDA_ERROR_INVALID_HANDLE;
    else if (!result && target && target->number && !target->at)
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
    if (!first || !last || !first->number || !last->number ||
        ((first->flags | last->flags) & DISABLE_TIMING))
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

/* False: it is no event. @op: without data: there is nothing to wait for. */
static bool make_wait(CUevent event, struct model_op *op)
{
    struct timing *timing = timing_enter();
    struct timing_event *found = event_of(timing, event);
    const struct timing_event *target = target_of(timing, found);

    *op = (struct model_op){.kind = TIMING_WAIT_EVENT, .engine = MODEL_NONE};
    if (target && target->number) {
        op->data[0] = target->stream;
        op->data[1] = target->number;
    }
    timing_leave(timing);
    return found;
}

CUresult event_wait(CUstream stream, bool per_thread, CUevent event)
{
    struct model_op op;

    if (capture_waits(stream, per_thread, (unsigned int)(uintptr_t)event - 1))
        return CUDA_SUCCESS;
    if (!make_wait(event, &op))
        return CUDA_ERROR_INVALID_HANDLE;
    return op.data[1] ? timing_submit(stream, per_thread, &op) : CUDA_SUCCESS;
}

CUresult cuCtxWaitEvent(CUcontext context, CUevent event)
{
    struct model_op op;

    ENTER();
    if (!context || !make_wait(event, &op))
        return CUDA_ERROR_INVALID_HANDLE;
    return op.data[1] ? timing_submit_to_all(context, &op) : CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    ENTER();
    (void)flags;
    return event_wait(stream, false, event);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
    ENTER();
    (void)flags;
    return event_wait(stream, true, event);
}
