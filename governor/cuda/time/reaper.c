// SPDX-License-Identifier: MIT
/*
 * The thread that sees the ends of batches. It runs only while there is one. It has no stream of
 * its own and waits for nothing of the driver's: it asks.
 */
#include <signal.h>
#include <sys/param.h>

#include "batch.h"
#include "real.h"

/* How often it asks at most, and at least. */
#define SOON_NS 50000u
#define LATE_NS 1000000u
/* So many are listed at once. */
#define SEEN_MOST 64

/* A batch whose end is awaited, and what was known of it when the lock was held. */
struct seen {
    struct batch *batch;
    const struct stamp *end;
    uint64_t due_at; /* launches that are pending may still be added */
    bool is_closing;
};

/* What comes after @last, which is one of them; NULL: the first ones. */
static unsigned int list_ended(struct meter *meter, const struct batch *last,
                               struct seen seen[SEEN_MOST])
{
    unsigned int count = 0;

    pthread_mutex_lock(&meter->lock);
    for (struct batch *batch = last ? last->next : meter->ended; batch && count < SEEN_MOST;
         batch = batch->next)
        seen[count++] = (struct seen){
            .batch = batch,
            .end = batch->end,
            .due_at = batch->work.submitted_at + batch->work.estimate_ns,
            .is_closing = batch->closing,
        };
    pthread_mutex_unlock(&meter->lock);
    return count;
}

/* What was seen of the begins of a class in one look. */
struct begins {
    bool runs;
    bool stalls;
};

/* Whether nothing of its stream is before it. Only this thread takes batches out. */
static bool is_first(struct meter *meter, const struct batch *batch)
{
    const struct batch *first;

    pthread_mutex_lock(&meter->lock);
    first = batch_find(meter->ended, &batch->at);
    pthread_mutex_unlock(&meter->lock);
    return first == batch;
}

/*
 * A batch whose end was not seen yet. Its debit is this thread's. While work of another stream
 * runs, the GPU is busy, and there is nothing to tell.
 */
static void look_at_begin(struct meter *meter, struct batch *batch, uint64_t now,
                          struct begins *begins)
{
    uint64_t seen_ns = meter->seen_ns[batch->work.class], at = batch->work.submitted_at;
    uint64_t waited = now - MIN(now, MAX(at, seen_ns));
    bool has_begun = batch->work.begun || !batch->begin ||
                     DRIVER(cuEventQuery, batch->begin->event) != CUDA_ERROR_NOT_READY;

    begins += batch->work.class;
    begins->runs |= has_begun;
    if (batch->work.begun || !batch->begin || (!has_begun && !is_first(meter, batch)))
        return;
    pthread_mutex_lock(&meter->lock);
    if (has_begun)
        lane_begun(meter->gpu->member, &batch->work);
    else
        begins->stalls |= lane_waits(&batch->work, waited, meter->runs[batch->work.class]);
    pthread_mutex_unlock(&meter->lock);
}

static void note_begins(struct meter *meter, const struct begins begins[GOVERNOR_CLASSES])
{
    for (enum governor_class class = 0; class < GOVERNOR_CLASSES; class ++) {
        meter->runs[class] = begins[class].runs;
        if (begins[class].stalls && !begins[class].runs)
            governor_member_class_stalled(meter->gpu->member, class);
    }
}

/* False: it has ended, or its end is not known. */
static bool is_awaited(const struct seen *seen)
{
    return seen->is_closing ||
           (seen->end && DRIVER(cuEventQuery, seen->end->event) == CUDA_ERROR_NOT_READY);
}

/* Its end comes after that of @other, which is awaited; NULL: of none. */
static bool is_behind(const struct seen *seen, const struct batch *other)
{
    return seen->end && other && batch_same_place(&seen->batch->at, &other->at);
}

/* How long until it may have ended, if that is less than @soon. */
static uint64_t sooner_due(const struct seen *seen, uint64_t now, uint64_t soon)
{
    if (seen->due_at >= now + soon)
        return soon;
    return seen->due_at > now ? (seen->due_at - now) / 2 : 0;
}

/* Returns how long until there may be something. */
static uint64_t look_at_ended(struct meter *meter, uint64_t now)
{
    /* Nobody else takes them out of the list. */
    struct batch *last = NULL, *awaited = NULL;
    struct begins begins[GOVERNOR_CLASSES] = {0};
    struct seen seen[SEEN_MOST];
    CUcontext current = NULL;
    uint64_t soon = LATE_NS;
    unsigned int count;

    do {
        count = list_ended(meter, last, seen);
        for (unsigned int i = 0; i < count; i++) {
            struct batch *batch = seen[i].batch;
            bool behind = is_behind(&seen[i], awaited);

            if (batch->at.context == batch_aside(meter)) {
                last = batch;
                continue;
            }
            if (!behind && current != batch->at.context) {
                current = batch->at.context;
                DRIVER(cuCtxSetCurrent, current);
            }
            if (!behind && !is_awaited(&seen[i])) {
                batch_retire(meter, batch);
                continue;
            }
            /* What is behind it in its stream has not begun. */
            if (!behind && !seen[i].is_closing)
                look_at_begin(meter, batch, now, begins);
            last = batch;
            awaited = seen[i].is_closing ? awaited : batch;
            soon = sooner_due(&seen[i], now, soon);
        }
    } while (count == SEEN_MOST);
    if (current)
        DRIVER(cuCtxSetCurrent, NULL);
    note_begins(meter, begins);
    return soon;
}

/*
 * When the program must have launched more, if it means to fill the batch: nobody can foresee it,
 * or kernels could always end before. A thread's own stream waits for that thread for longer.
 */
static uint64_t quiet_at(const struct batch *batch)
{
    uint64_t more = (batch->launched_ns * 0x9e3779b97f4a7c15ull >> 32) % QUIET_MORE_NS;

    if (batch->at.thread && !batch->end)
        return batch->work.submitted_at + STALE_NS + batch->work.estimate_ns;
    return batch->launched_ns + batch->work.estimate_ns + QUIET_NS + more;
}

/* @soon: is made less if another one is due before. */
static struct batch *take_quiet(struct meter *meter, uint64_t now, uint64_t *soon)
{
    struct batch *batch, *taken = NULL;

    pthread_mutex_lock(&meter->lock);
    for (batch = meter->open; batch && !taken; batch = batch->next) {
        uint64_t at = quiet_at(batch);

        /* While one of its stream is awaited, the stream's queue may be full. */
        if (batch->at.context == batch_aside(meter) || batch_find(meter->ended, &batch->at))
            continue;
        /* Its first launch is on its way. */
        if (!batch->launches)
            at = now + QUIET_NS;
        if (now >= at)
            taken = batch;
        else
            *soon = MIN(*soon, at - now);
    }
    /* What is on its way for so long may wait for the stream: then its call ends with the work. */
    if (taken)
        taken->left = !batch_take_out(meter, taken);
    if (taken && taken->at.thread)
        meter->unseen_until = now + UNSEEN_NS;
    pthread_mutex_unlock(&meter->lock);
    return taken;
}

/*
 * A stream that ends, or captures, is left first (meter.h), so these have not. Only a thread can
 * record an event on its own stream: what is left over there ends by the one after its last launch,
 * or is charged by the estimates.
 */
static uint64_t look_at_open(struct meter *meter, uint64_t now)
{
    uint64_t soon = LATE_NS;
    struct batch *batch;
    bool any = false;

    while ((batch = take_quiet(meter, now, &soon))) {
        DRIVER(cuCtxSetCurrent, batch->at.context);
        if (batch->at.thread)
            batch_close_unseen(meter, batch);
        else
            batch_close(meter, batch);
        any = true;
    }
    if (any)
        DRIVER(cuCtxSetCurrent, NULL);
    return soon;
}

static uint64_t look_at_all(struct meter *meter)
{
    uint64_t now = clock_now(), soon, next;

    pthread_mutex_lock(&meter->looks);
    soon = look_at_open(meter, now);
    next = look_at_ended(meter, now);
    mark_look(meter);
    pthread_mutex_unlock(&meter->looks);
    return MIN(MAX(MIN(next, soon), SOON_NS), LATE_NS);
}

static void sleep_for(struct meter *meter, uint64_t ns)
{
    uint64_t at = clock_now() + ns;
    struct timespec until = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};

    pthread_cond_timedwait(&meter->work, &meter->lock, &until);
}

static void *reaper_main(void *data)
{
    struct meter *meter = data;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    pthread_mutex_lock(&meter->lock);
    for (;;) {
        uint64_t soon;

        while (!meter->open && !meter->ended && !mark_awaited_ns(meter, 0))
            pthread_cond_wait(&meter->work, &meter->lock);
        pthread_mutex_unlock(&meter->lock);
        soon = look_at_all(meter);
        pthread_mutex_lock(&meter->lock);
        if (!meter->open && !meter->ended)
            soon = mark_awaited_ns(meter, clock_now());
        if (soon)
            sleep_for(meter, soon);
    }
    return NULL;
}

bool reaper_start(struct meter *meter)
{
    pthread_t thread;
    sigset_t all, before;

    /* Signals belong to the application's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    meter->has_reaper = pthread_create(&thread, NULL, reaper_main, meter) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (meter->has_reaper)
        pthread_detach(thread);
    return meter->has_reaper;
}
