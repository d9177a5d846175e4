// SPDX-License-Identifier: MIT
#include "backlog.h"

#include "batch.h"
#include "real.h"

/* A marker follows so many launches at most, and such a part of the work that may wait. */
#define STEP_MOST 64u
#define STEP_PART 7
/* While nothing is known of a program's launches. */
#define STEP_FIRST    8u
#define FIRST_MARKERS 2u
/* A thread looks again so often, and not longer than this if nothing moves. */
#define LOOK_NS          100000u
#define PATIENCE_NS      100000000u
#define PATIENCE_MOST_NS 1000000000u
/* So many launches are seen before their time is believed. What is old counts for 7/8. */
#define SEEN_LEAST 64u
#define OLD_WEIGHT 8
#define SCALE      256u

/* Launches of this thread since the last marker. Streams that share a place share a marker. */
#define PLACES 8
static _Thread_local unsigned int launches_since[GOVERNOR_CLASSES][PLACES];
/* For all GPUs and threads: a look costs more than a wrong number. 0: nothing is known. */
static _Atomic unsigned int steps[GOVERNOR_CLASSES];

static unsigned int *place_of(enum governor_class class, CUstream stream)
{
    return &launches_since[class][((uintptr_t)stream >> 4 ^ (uintptr_t)stream >> 9) % PLACES];
}

static unsigned int step_of(enum governor_class class)
{
    unsigned int step = atomic_load_explicit(&steps[class], memory_order_relaxed);

    return step ? step : STEP_FIRST;
}

/* Launches that wait, and how many markers they have; without those that are stuck. */
static uint64_t pending(const struct backlog *backlog, unsigned int *markers)
{
    uint64_t launches = 0;

    *markers = 0;
    for (unsigned int i = 0; i < backlog->count; i++) {
        if (backlog->markers[i].is_stuck)
            continue;
        launches += backlog->markers[i].launches;
        ++*markers;
    }
    return launches;
}

static uint64_t allowed(const struct meter *meter, const struct backlog *backlog)
{
    uint64_t ns = governor_member_backlog_ns(meter->gpu->member,
                                             (enum governor_class)(backlog - meter->backlogs));

    return ns ? ns : WORK_BACKLOG_NS;
}

static void set_step(struct meter *meter, const struct backlog *backlog)
{
    uint64_t most = allowed(meter, backlog) / STEP_PART / backlog->ns;

    atomic_store_explicit(&steps[backlog - meter->backlogs],
                          most > STEP_MOST ? STEP_MOST
                          : most           ? (unsigned int)most
                                           : 1,
                          memory_order_relaxed);
}

/*
 * If the GPU had nothing to do in between, that counts, too: then there are more markers than there
 * need be, and soon there is a better number. Markers of several streams come close together, each
 * for launches that were spread over a longer time. Only over many of them is the time that of the
 * launches.
 */
static void learn(struct meter *meter, struct backlog *backlog, const struct marker *marker,
                  float ms)
{
    backlog->sum_ns += (uint64_t)((double)ms * 1e6) - backlog->sum_ns / OLD_WEIGHT;
    backlog->sum_launches += marker->launches * SCALE - backlog->sum_launches / OLD_WEIGHT;
    backlog->seen += marker->launches;
    if (backlog->seen < SEEN_LEAST)
        return;
    backlog->seen = SEEN_LEAST;
    backlog->ns = backlog->sum_ns * SCALE / backlog->sum_launches;
    backlog->ns += !backlog->ns;
    set_step(meter, backlog);
}

static void take_out(struct backlog *backlog, unsigned int at)
{
    unsigned int count = backlog->count - 1;

    for (; at < count; at++)
        backlog->markers[at] = backlog->markers[at + 1];
    backlog->count = count;
}

/* It came: with @looks. */
static void came(struct meter *meter, struct backlog *backlog, unsigned int at)
{
    struct marker marker, before = backlog->last;
    bool is_measured;
    float ms = 0;

    pthread_mutex_lock(&meter->lock);
    marker = backlog->markers[at];
    take_out(backlog, at);
    pthread_mutex_unlock(&meter->lock);
    is_measured = before.context == marker.context &&
                  DRIVER(cuEventElapsedTime, &ms, before.event, marker.event) == CUDA_SUCCESS &&
                  ms > 0;
    pthread_mutex_lock(&meter->lock);
    backlog->last = marker;
    if (is_measured)
        learn(meter, backlog, &marker, ms);
    pthread_mutex_unlock(&meter->lock);
    batch_give_event(meter, before.context, before.event);
}

/* Takes out what has come; returns true if something has. Streams have no order among them. */
static bool look(struct meter *meter, struct backlog *backlog)
{
    bool has_come = false;
    unsigned int i = 0;

    /* Someone else looks. */
    if (pthread_mutex_trylock(&meter->looks))
        return false;
    while (i < backlog->count) {
        if (backlog->markers[i].context == batch_aside(meter) ||
            DRIVER(cuEventQuery, backlog->markers[i].event) == CUDA_ERROR_NOT_READY) {
            i++;
            continue;
        }
        came(meter, backlog, i);
        has_come = true;
    }
    pthread_mutex_unlock(&meter->looks);
    return has_come;
}

static void push(struct meter *meter, struct backlog *backlog, CUcontext context, CUevent event,
                 unsigned int launches)
{
    unsigned int count;

    pthread_mutex_lock(&meter->lock);
    count = backlog->count;
    if (event && count < BACKLOG_MARKERS) {
        backlog->markers[count] = (struct marker){context, event, launches, false};
        backlog->count = count + 1;
        event = NULL;
    } else if (count) {
        backlog->markers[count - 1].launches += launches;
    }
    pthread_mutex_unlock(&meter->lock);
    batch_give_event(meter, context, event);
}

/* By how many nanoseconds too much work waits. */
static uint64_t excess(struct meter *meter, const struct backlog *backlog)
{
    uint64_t ns, too_much, most = allowed(meter, backlog);
    unsigned int markers;

    pthread_mutex_lock(&meter->lock);
    ns = pending(backlog, &markers) * backlog->ns;
    if (ns && markers < BACKLOG_MARKERS)
        too_much = ns > most ? ns - most : 0;
    else
        too_much = markers > FIRST_MARKERS ? LOOK_NS : 0;
    pthread_mutex_unlock(&meter->lock);
    return too_much;
}

static void give_up(struct meter *meter, struct backlog *backlog)
{
    pthread_mutex_lock(&meter->lock);
    for (unsigned int i = 0; i < backlog->count; i++)
        backlog->markers[i].is_stuck = true;
    pthread_mutex_unlock(&meter->lock);
}

static void sleep_for(uint64_t ns)
{
    struct timespec time = {.tv_nsec = (long)ns};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/*
 * Nothing may move because all of it waits for what this thread launches next. So it waits for a
 * limited time: as long as the work should take, twice.
 */
static void wait_for_room(struct meter *meter, struct backlog *backlog)
{
    uint64_t moved_at = batch_now(), too_much = excess(meter, backlog);

    while (too_much) {
        uint64_t patience = 2 * too_much > PATIENCE_NS ? 2 * too_much : PATIENCE_NS;

        if (batch_now() > moved_at + (patience < PATIENCE_MOST_NS ? patience : PATIENCE_MOST_NS)) {
            give_up(meter, backlog);
            return;
        }
        sleep_for(LOOK_NS);
        if (look(meter, backlog))
            moved_at = batch_now();
        too_much = excess(meter, backlog);
    }
}

/* The arbiter charges what waits when the class becomes measured, and tells others of it. */
static void publish(struct meter *meter, const struct backlog *backlog)
{
    unsigned int markers;
    uint64_t launches, ns;

    pthread_mutex_lock(&meter->lock);
    launches = pending(backlog, &markers);
    ns = backlog->ns;
    pthread_mutex_unlock(&meter->lock);
    governor_member_queued(meter->gpu->member, (enum governor_class)(backlog - meter->backlogs),
                           launches, ns);
}

static void mark(struct meter *meter, struct backlog *backlog, CUstream stream, bool per_thread,
                 unsigned int launches)
{
    CUstreamCaptureMode mode;
    CUcontext context;

    if (meter_is_capturing(stream, per_thread) || DRIVER(cuCtxGetCurrent, &context) != CUDA_SUCCESS)
        return;
    meter_relax(&mode);
    look(meter, backlog);
    push(meter, backlog, context, batch_record(meter, context, stream, per_thread), launches);
    wait_for_room(meter, backlog);
    publish(meter, backlog);
    meter_unrelax(&mode);
}

void backlog_after(struct gpu *gpu, enum governor_class class, CUstream stream, bool per_thread)
{
    unsigned int *since = place_of(class, stream), launches = ++*since;
    struct meter *meter;

    if (launches < step_of(class))
        return;
    *since = 0;
    meter = meter_of(gpu);
    if (meter)
        mark(meter, &meter->backlogs[class], stream, per_thread, launches);
}

void backlog_drop(struct meter *meter, enum governor_class class)
{
    struct backlog *backlog = &meter->backlogs[class];
    struct marker left[BACKLOG_MARKERS];
    unsigned int count;

    if (!atomic_load_explicit(&backlog->count, memory_order_relaxed))
        return;
    /* Someone looks: the next launch drops them. */
    if (pthread_mutex_trylock(&meter->looks))
        return;
    pthread_mutex_lock(&meter->lock);
    count = backlog->count;
    for (unsigned int i = 0; i < count; i++)
        left[i] = backlog->markers[i];
    backlog->count = 0;
    pthread_mutex_unlock(&meter->lock);
    for (unsigned int i = 0; i < count; i++)
        batch_give_event(meter, left[i].context, left[i].event);
    pthread_mutex_unlock(&meter->looks);
}

void backlog_forget(struct backlog *backlog, CUcontext context)
{
    for (unsigned int i = backlog->count; i-- > 0;)
        if (backlog->markers[i].context == context)
            take_out(backlog, i);
    if (backlog->last.context == context)
        backlog->last = (struct marker){0};
}

void backlog_rename(struct backlog *backlog, CUcontext from, CUcontext to)
{
    for (unsigned int i = 0; i < backlog->count; i++)
        if (backlog->markers[i].context == from)
            backlog->markers[i].context = to;
    if (backlog->last.context == from)
        backlog->last.context = to;
}
