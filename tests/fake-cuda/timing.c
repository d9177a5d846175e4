// SPDX-License-Identifier: MIT
#include "timing.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "card.h"

/* A process that has died is found out so soon. */
#define REAP_NS 5000000u
/* Who waits looks this often. */
#define SOON_NS 50000u
#define LATE_NS 1000000u

static bool reach_operation(void *data, uint32_t stream, struct model_op *op)
{
    return timing_reach(data, stream, op);
}

static void begins(void *data, uint32_t stream, struct model_op *op)
{
    struct timing *timing = data;

    (void)stream;
    if (op->kind == TIMING_SPIN && timing->released > op->number)
        op->left_ns = 0;
    if (op->kind == TIMING_EVENT && timing->events[op->data[0]].number == op->number)
        timing->events[op->data[0]].at = op->began_at;
}

/* A kernel that others spin for has run. */
static void release(struct timing *timing, uint64_t number)
{
    struct model *model = &timing->model;

    timing->released = number > timing->released ? number : timing->released;
    for (uint32_t i = 0; i < model->active_count; i++) {
        struct model_op *op = model_first(model, model->active[i]);

        if (op->kind == TIMING_SPIN && op->began_at && op->number < number)
            model_cut(model, op);
    }
}

static void ends(void *data, uint32_t stream, const struct model_op *op)
{
    struct timing *timing = data;

    if (op->kind == TIMING_RELEASE)
        release(timing, op->number);
    if (op->kind == TIMING_FAULT)
        timing->runners[timing->model.streams[stream].process].error = (uint32_t)op->data[0];
}

static void drop_streams(struct timing *timing, uint32_t runner, uint64_t context, bool all)
{
    for (uint32_t i = 0; i < timing->stream_count; i++) {
        struct timing_stream *stream = &timing->streams[i];

        if (!stream->used || timing->model.streams[i].process != runner ||
            (!all && stream->context != context))
            continue;
        model_drop(&timing->model, i);
        *stream = (struct timing_stream){0};
    }
}

static void reap(struct timing *timing)
{
    for (uint32_t i = 0; i < MODEL_PROCESSES; i++) {
        struct timing_runner *runner = &timing->runners[i];

        if (!runner->pid || !kill(runner->pid, 0) || errno != ESRCH)
            continue;
        drop_streams(timing, i, 0, true);
        for (unsigned int k = 0; k < TIMING_EVENTS; k++)
            if (timing->events[k].used && timing->events[k].runner == i)
                timing->events[k] = (struct timing_event){0};
        *runner = (struct timing_runner){0};
    }
}

static void advance(struct timing *timing)
{
    const struct model_user user = {timing, reach_operation, begins, ends};

    model_advance(&timing->model, card_now(), &user);
    for (uint32_t i = 0; i < MODEL_PROCESSES; i++)
        if (timing->runners[i].error)
            drop_streams(timing, i, 0, true);
}

struct timing *timing_enter(void)
{
    struct timing *timing = card_timing();

    if (pthread_mutex_lock(&timing->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&timing->lock);
    if (!timing->ready)
        model_init(&timing->model, MODEL_SLICED, card_now());
    timing->ready = true;
    if (card_now() > timing->reaped_at + REAP_NS) {
        reap(timing);
        timing->reaped_at = card_now();
    }
    advance(timing);
    return timing;
}

void timing_leave(struct timing *timing)
{
    pthread_mutex_unlock(&timing->lock);
}

static _Atomic int own_pid;

static void forget_pid(void)
{
    own_pid = 0;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_pid);
}

/* Without a system call for each launch. */
static int get_pid(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    if (!own_pid)
        own_pid = getpid();
    return own_pid;
}

uint32_t timing_self(struct timing *timing)
{
    static _Atomic uint32_t last;
    uint32_t at = last, none = MODEL_PROCESSES;
    int pid = get_pid();

    if (timing->runners[at].pid == pid)
        return at;
    for (at = 0; at < MODEL_PROCESSES && timing->runners[at].pid != pid; at++)
        if (!timing->runners[at].pid && none == MODEL_PROCESSES)
            none = at;
    if (at == MODEL_PROCESSES && none == MODEL_PROCESSES)
        abort();
    last = at < MODEL_PROCESSES ? at : none;
    timing->runners[last].pid = pid;
    return last;
}

CUresult timing_error(void)
{
    struct timing *timing = timing_enter();
    CUresult error = (CUresult)timing->runners[timing_self(timing)].error;

    timing_leave(timing);
    return error;
}

uint64_t timing_key(CUstream stream, bool per_thread, uint64_t *thread)
{
    static _Atomic uint64_t threads;
    static _Thread_local uint64_t number;

    *thread = 0;
    if (stream == CU_STREAM_PER_THREAD || (!stream && per_thread)) {
        number = number ? number : ++threads;
        *thread = number;
        return (uintptr_t)CU_STREAM_PER_THREAD;
    }
    return stream ? (uintptr_t)stream : (uintptr_t)CU_STREAM_LEGACY;
}

/* Of all streams of the group, one joins the others. */
static void join_group(struct timing *timing, uint64_t group)
{
    struct model_stream *streams = timing->model.streams;
    uint32_t joining = 0;

    for (uint32_t i = 0; i < timing->stream_count; i++)
        if (timing->streams[i].used && streams[i].group == group && streams[i].order == MODEL_JOINS)
            joining = i + 1;
    for (uint32_t i = 0; i < timing->stream_count; i++)
        if (timing->streams[i].used && streams[i].group == group)
            streams[i].joining = joining;
}

static uint64_t group_of(uint32_t runner, uint64_t context)
{
    return context ? context ^ (uint64_t)(runner + 1) << 48 : 0;
}

static uint32_t make_stream(struct timing *timing, const struct timing_stream *made,
                            enum model_order order)
{
    struct model_stream *stream;
    uint32_t at = 0, runner = timing_self(timing);

    while (at < MODEL_STREAMS && timing->streams[at].used &&
           !(timing->streams[at].gone && !timing->model.streams[at].count))
        at++;
    if (at == MODEL_STREAMS)
        abort();
    timing->stream_count = at < timing->stream_count ? timing->stream_count : at + 1;
    timing->streams[at] = *made;
    timing->streams[at].used = true;
    timing->streams[at].device = (uint32_t)fake_device();
    timing->streams[at].engine = MODEL_COMPUTE + timing->streams[at].device * MODEL_OF_CARD;
    stream = &timing->model.streams[at];
    stream->process = runner;
    stream->order = order;
    stream->group = group_of(runner, made->context);
    stream->joining = 0;
    join_group(timing, stream->group);
    return at;
}

uint32_t timing_stream_of(struct timing *timing, CUstream stream, bool per_thread)
{
    uint64_t thread, handle = timing_key(stream, per_thread, &thread);
    uint64_t context = (uintptr_t)fake_current();
    uint32_t self = timing_self(timing);

    for (uint32_t i = 0; i < timing->stream_count; i++) {
        const struct timing_stream *at = &timing->streams[i];

        if (at->used && !at->gone && at->handle == handle && at->thread == thread &&
            timing->model.streams[i].process == self && (at->made || at->context == context))
            return i;
    }
    return make_stream(
        timing, &(struct timing_stream){.context = context, .handle = handle, .thread = thread},
        handle == (uintptr_t)CU_STREAM_LEGACY ? MODEL_JOINS : MODEL_ORDINARY);
}

/* An event's cost is on the engine before it. */
static bool append(struct timing *timing, uint32_t at, const struct model_op *given)
{
    struct model_op op = *given;
    struct timing_stream *stream = &timing->streams[at];

    if (timing->model.streams[at].count >= TIMING_DEPTH)
        return false;
    if (op.kind == TIMING_EVENT)
        op.engine = stream->engine;
    else if (op.engine != MODEL_NONE)
        stream->engine = op.engine += stream->device * MODEL_OF_CARD;
    if (!model_add(&timing->model, at, &op))
        return false;
    if (op.kind == TIMING_EVENT) {
        struct timing_event *event = &timing->events[op.data[0]];

        event->number = timing->model.numbers;
        event->stream = at;
        event->at = 0;
    }
    advance(timing);
    return true;
}

CUresult timing_submit(CUstream stream, bool per_thread, const struct model_op *op)
{
    CUresult result;
    bool is_done;

    if (capture_takes(stream, per_thread, op, &result))
        return result;
    do {
        struct timing *timing = timing_enter();

        result = (CUresult)timing->runners[timing_self(timing)].error;
        is_done = result || append(timing, timing_stream_of(timing, stream, per_thread), op);
        timing_leave(timing);
        if (!is_done)
            timing_sleep(SOON_NS);
    } while (!is_done);
    return result;
}

CUresult timing_submit_to_all(CUcontext context, const struct model_op *op)
{
    struct timing *timing = timing_enter();
    uint32_t self = timing_self(timing);
    CUresult result = (CUresult)timing->runners[self].error;

    for (uint32_t i = 0; i < timing->stream_count && result == CUDA_SUCCESS; i++)
        if (timing->streams[i].used && !timing->streams[i].gone &&
            timing->streams[i].context == (uintptr_t)context &&
            timing->model.streams[i].process == self && !append(timing, i, op))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    timing_leave(timing);
    return result;
}

void timing_sleep(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* What came until then, of one stream, or of all of a group. @until: 0: until now. */
struct wait {
    uint32_t stream;
    uint64_t group;
    bool without_apart;
    uint64_t until;
};

/* 0: it is over; else how long that takes at least. */
static uint64_t left(const struct timing *timing, const struct wait *wait)
{
    const struct model *model = &timing->model;
    uint64_t most = 0;

    for (uint32_t i = 0; i < model->active_count; i++) {
        uint32_t at = model->active[i];
        const struct model_stream *stream = &model->streams[at];
        uint64_t ns = model_least_ns(model, at);

        if (wait->group ? stream->group != wait->group : at != wait->stream)
            continue;
        if ((wait->without_apart && stream->order == MODEL_APART) ||
            model_passed(model, at, wait->until))
            continue;
        ns = ns < SOON_NS ? SOON_NS : ns > LATE_NS ? LATE_NS : ns;
        most = ns > most ? ns : most;
    }
    return most;
}

/* Once, if it must not wait. */
static CUresult await(struct wait *wait, bool may_wait)
{
    for (;;) {
        struct timing *timing = timing_enter();
        CUresult error = (CUresult)timing->runners[timing_self(timing)].error;
        uint64_t ns;

        wait->until = wait->until ? wait->until : timing->model.numbers;
        ns = left(timing, wait);
        timing_leave(timing);
        if (error || !ns)
            return error;
        if (!may_wait)
            return CUDA_ERROR_NOT_READY;
        timing_sleep(ns);
    }
}

/* The stream that joins has done what it had when those that it joins have. */
static CUresult await_stream(CUstream stream, bool per_thread, bool may_wait)
{
    struct timing *timing;
    struct wait wait = {0};
    CUresult result;

    if (capture_takes(stream, per_thread, NULL, &result))
        return result;
    timing = timing_enter();
    wait.stream = timing_stream_of(timing, stream, per_thread);
    wait.until = timing->model.numbers;
    if (timing->model.streams[wait.stream].order == MODEL_JOINS) {
        wait.group = timing->model.streams[wait.stream].group;
        wait.without_apart = true;
    }
    timing_leave(timing);
    return await(&wait, may_wait);
}

CUresult timing_await(CUstream stream, bool per_thread)
{
    return await_stream(stream, per_thread, true);
}

CUresult timing_ask(CUstream stream, bool per_thread)
{
    return await_stream(stream, per_thread, false);
}

CUresult timing_await_context(CUcontext context)
{
    struct timing *timing;
    struct wait wait = {0};

    if (!context)
        return CUDA_SUCCESS;
    timing = timing_enter();
    wait.group = group_of(timing_self(timing), (uintptr_t)context);
    timing_leave(timing);
    return await(&wait, true);
}

void timing_end_context(CUcontext context)
{
    struct timing *timing = timing_enter();
    uint32_t self = timing_self(timing);

    drop_streams(timing, self, (uintptr_t)context, false);
    for (unsigned int i = 0; i < TIMING_EVENTS; i++) {
        struct timing_event *event = &timing->events[i];

        event->ended |=
            event->used && event->runner == self && event->context == (uintptr_t)context;
    }
    timing_leave(timing);
}

uint64_t fake_waiting_ns(unsigned int engine)
{
    struct timing *timing = timing_enter();
    const struct model *model = &timing->model;
    uint64_t ns = 0;

    for (uint32_t i = 0; i < model->active_count; i++)
        if (timing->streams[model->active[i]].engine == engine)
            ns += model_least_ns(model, model->active[i]);
    timing_leave(timing);
    return ns;
}

/* Flags: 1: it does not wait for the legacy stream. */
static CUresult create(CUstream *stream, unsigned int flags)
{
    static _Atomic uint64_t next = 0x51000000;
    struct timing *timing;
    uint64_t handle = next += 0x40;

    if (!stream)
        return CUDA_ERROR_INVALID_VALUE;
    timing = timing_enter();
    make_stream(timing,
                &(struct timing_stream){
                    .made = true, .context = (uintptr_t)fake_current(), .handle = handle},
                flags & 1 ? MODEL_APART : MODEL_ORDINARY);
    timing_leave(timing);
    *stream = (CUstream)(uintptr_t)handle;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    ENTER();
    return create(stream, flags);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    ENTER();
    (void)priority;
    return create(stream, flags);
}

/* What is launched there goes on. */
static CUresult destroy(CUstream stream)
{
    struct timing *timing;

    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    timing = timing_enter();
    timing->streams[timing_stream_of(timing, stream, false)].gone = true;
    timing_leave(timing);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
    ENTER();
    return destroy(stream);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    ENTER();
    return destroy(stream);
}

#define ON_STREAM(name, per_thread, function)                                                      \
    CUresult name(CUstream stream)                                                                 \
    {                                                                                              \
        ENTER();                                                                                   \
        return function(stream, per_thread);                                                       \
    }
ON_STREAM(cuStreamSynchronize, false, timing_await)
ON_STREAM(cuStreamSynchronize_ptsz, true, timing_await)
ON_STREAM(cuStreamQuery, false, timing_ask)
ON_STREAM(cuStreamQuery_ptsz, true, timing_ask)
