// SPDX-License-Identifier: MIT
/*
 * The thread that sees the ends of batches. It runs only while there is one. It has no stream of
 * its own and waits for nothing of the driver's: it asks.
 */
#include <signal.h>

#include "batch.h"
#include "real.h"

/* How often it asks at most, and at least. */
#define SOON_NS 50000u
#define LATE_NS 1000000u
/*
 * The oldest work has stalled if it has not begun after the first time: its stream waits for
 * something that may come later. After the second it is told again, and work behind it must not be
 * held up either. As in the Vulkan layer.
 */
#define STALLED_NS 3000000u
#define STUCK_NS   20000000u

/* So many are listed at once. */
#define SEEN_MOST 64

/* A batch whose end is awaited, and what was known of it when the lock was held. */
struct seen {
    struct batch *batch;
    CUevent end;
    bool is_closing;
};

static uint64_t limited(uint64_t ns)
{
    return ns < SOON_NS ? SOON_NS : ns > LATE_NS ? LATE_NS : ns;
}

/* What comes after @last, which is one of them; NULL: the first ones. */
static unsigned int list_ended(struct meter *meter, const struct batch *last,
                               struct seen seen[SEEN_MOST])
{
    unsigned int count = 0;

    pthread_mutex_lock(&meter->lock);
    for (struct batch *batch = last ? last->next : meter->ended; batch && count < SEEN_MOST;
         batch = batch->next)
        seen[count++] = (struct seen){batch, batch->end, batch->closing};
    pthread_mutex_unlock(&meter->lock);
    return count;
}

/* Launches look at it. */
static void set_waiting(struct meter *meter, struct batch *batch, bool is_unbegun, bool is_stuck)
{
    if (batch->unbegun == is_unbegun && batch->stuck == is_stuck)
        return;
    pthread_mutex_lock(&meter->lock);
    batch->unbegun = is_unbegun;
    batch->stuck = is_stuck;
    pthread_mutex_unlock(&meter->lock);
}

static void note_begun(struct meter *meter, struct batch *batch)
{
    batch->begun = true;
    if (batch->unbegun)
        batch->debit = governor_member_begun(meter->gpu->member, batch->debit);
    set_waiting(meter, batch, false, false);
}

/* The oldest batch, whose end was not seen yet. */
static void look_at_begin(struct meter *meter, struct batch *batch, uint64_t now)
{
    uint64_t seen_ns = meter->ends[batch->class].seen_ns;
    uint64_t since = batch->opened_ns > seen_ns ? batch->opened_ns : seen_ns;
    uint64_t waited = now > since ? now - since : 0;

    if (batch->begun || !batch->begin)
        return;
    if (DRIVER(cuEventQuery, batch->begin) != CUDA_ERROR_NOT_READY) {
        note_begun(meter, batch);
        return;
    }
    if (waited >= batch->told_ns + (batch->told_ns ? STUCK_NS : STALLED_NS)) {
        batch->told_ns = waited;
        set_waiting(meter, batch, true, batch->stuck);
        governor_member_class_stalled(meter->gpu->member, batch->class);
    }
    if (waited >= STUCK_NS)
        set_waiting(meter, batch, batch->unbegun, true);
}

/* False: it has ended, or its end is not known. */
static bool is_awaited(const struct seen *seen)
{
    return seen->is_closing ||
           (seen->end && DRIVER(cuEventQuery, seen->end) == CUDA_ERROR_NOT_READY);
}

/* Its end comes after that of @other, which is awaited; NULL: of none. */
static bool is_behind(const struct seen *seen, const struct batch *other)
{
    return seen->end && other && batch_same_stream(seen->batch, other);
}

/* How long until it may have ended, if that is less than @soon. */
static uint64_t sooner(const struct batch *batch, uint64_t now, uint64_t soon)
{
    uint64_t due = batch->opened_ns + batch->sum_ns;

    if (due >= now + soon)
        return soon;
    return due > now ? (due - now) / 2 : 0;
}

/* Returns how long until there may be something. */
static uint64_t look_at_ended(struct meter *meter, uint64_t now)
{
    /* Nobody else takes them out of the list. */
    struct batch *last = NULL, *awaited = NULL;
    struct seen seen[SEEN_MOST];
    uint64_t soon = LATE_NS;
    unsigned int count;

    do {
        count = list_ended(meter, last, seen);
        for (unsigned int i = 0; i < count; i++) {
            struct batch *batch = seen[i].batch;

            if (batch->context == batch_aside(meter)) {
                last = batch;
                continue;
            }
            DRIVER(cuCtxSetCurrent, batch->context);
            if (!is_behind(&seen[i], awaited) && !is_awaited(&seen[i])) {
                batch_retire(meter, batch, seen[i].end);
                continue;
            }
            if (!last)
                look_at_begin(meter, batch, now);
            last = batch;
            awaited = seen[i].is_closing ? awaited : batch;
            soon = sooner(batch, now, soon);
        }
    } while (count == SEEN_MOST);
    DRIVER(cuCtxSetCurrent, NULL);
    return soon;
}

/*
 * When the program must have launched more, if it means to fill the batch: nobody can foresee it,
 * or kernels could always end before. A thread's own stream waits for that thread for longer.
 */
static uint64_t quiet_at(const struct batch *batch)
{
    uint64_t more = (batch->launched_ns * 0x9e3779b97f4a7c15ull >> 32) % QUIET_MORE_NS;

    if (batch->thread)
        return batch->opened_ns + STALE_NS + batch->sum_ns;
    return batch->launched_ns + batch->sum_ns + QUIET_NS + more;
}

/* Nothing of its stream is awaited. So the stream's queue is not full, and takes an event at once.
 */
static bool is_next(const struct meter *meter, const struct batch *batch)
{
    for (const struct batch *other = meter->ended; other; other = other->next)
        if (batch_same_stream(other, batch))
            return false;
    return true;
}

/* @soon: is made less if another one is due before. */
static struct batch *take_quiet(struct meter *meter, uint64_t now, uint64_t *soon)
{
    struct batch *batch, *taken = NULL;

    pthread_mutex_lock(&meter->lock);
    for (batch = meter->open; batch && !taken; batch = batch->next) {
        uint64_t at = quiet_at(batch);

        if (batch->context == batch_aside(meter) || !is_next(meter, batch))
            continue;
        /* Its first launch is on its way. */
        if (!batch->launches)
            at = now + QUIET_NS;
        if (now >= at)
            taken = batch;
        else
            *soon = at - now < *soon ? at - now : *soon;
    }
    if (taken)
        batch_take_out(meter, taken);
    pthread_mutex_unlock(&meter->lock);
    return taken;
}

/*
 * A stream that ends, or captures, is left first (meter.h), so these have not. Only a thread can
 * record an event on its own stream: what is left over there is charged by the estimates.
 */
static uint64_t look_at_open(struct meter *meter, uint64_t now)
{
    uint64_t soon = LATE_NS;
    struct batch *batch;

    while ((batch = take_quiet(meter, now, &soon))) {
        DRIVER(cuCtxSetCurrent, batch->context);
        if (batch->thread)
            batch_close_unseen(meter, batch);
        else
            batch_close(meter, batch);
    }
    return soon;
}

static uint64_t look(struct meter *meter)
{
    uint64_t now = batch_now(), soon, next;

    pthread_mutex_lock(&meter->looks);
    soon = look_at_open(meter, now);
    next = look_at_ended(meter, now);
    pthread_mutex_unlock(&meter->looks);
    return limited(next < soon ? next : soon);
}

static void sleep_for(struct meter *meter, uint64_t ns)
{
    uint64_t at = batch_now() + ns;
    struct timespec until = {.tv_sec = (time_t)(at / 1000000000u),
                             .tv_nsec = (long)(at % 1000000000u)};

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

        while (!meter->open && !meter->ended)
            pthread_cond_wait(&meter->work, &meter->lock);
        pthread_mutex_unlock(&meter->lock);
        soon = look(meter);
        pthread_mutex_lock(&meter->lock);
        sleep_for(meter, soon);
    }
    return NULL;
}

bool reaper_start(struct meter *meter)
{
    pthread_t thread;
    sigset_t all, before;

    if (meter->has_reaper)
        return true;
    /* Signals belong to the application's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    meter->has_reaper = pthread_create(&thread, NULL, reaper_main, meter) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (meter->has_reaper)
        pthread_detach(thread);
    return meter->has_reaper;
}
