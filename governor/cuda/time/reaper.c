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

static uint64_t limited(uint64_t ns)
{
    return ns < SOON_NS ? SOON_NS : ns > LATE_NS ? LATE_NS : ns;
}

static void note_begun(struct meter *meter, struct batch *batch)
{
    batch->begun = true;
    batch->stuck = false;
    if (batch->unbegun)
        batch->debit = governor_member_begun(meter->gpu->member, batch->debit);
    batch->unbegun = false;
}

/* The oldest batch, whose end was not seen yet. */
static void look_at_begin(struct meter *meter, struct batch *batch, uint64_t now)
{
    uint64_t since = batch->opened_ns > meter->seen_ns ? batch->opened_ns : meter->seen_ns;
    uint64_t waited = now > since ? now - since : 0;

    if (batch->begun || !batch->begin)
        return;
    if (DRIVER(cuEventQuery, batch->begin) != CUDA_ERROR_NOT_READY) {
        note_begun(meter, batch);
        return;
    }
    if (waited >= batch->told_ns + (batch->told_ns ? STUCK_NS : STALLED_NS)) {
        batch->told_ns = waited;
        batch->unbegun = true;
        governor_member_stalled(meter->gpu->member);
    }
    batch->stuck |= waited >= STUCK_NS;
}

/* Returns how long until there may be something. */
static uint64_t look_at_ended(struct meter *meter, uint64_t now)
{
    uint64_t soon = LATE_NS;
    struct batch *batch, *next;

    for (batch = meter->ended; batch; batch = next) {
        uint64_t due = batch->opened_ns + batch->sum_ns;

        next = batch->next;
        DRIVER(cuCtxSetCurrent, batch->context);
        if (DRIVER(cuEventQuery, batch->end) != CUDA_ERROR_NOT_READY) {
            batch_retire(meter, batch);
            continue;
        }
        if (batch == meter->ended)
            look_at_begin(meter, batch, now);
        if (due < now + soon)
            soon = due > now ? (due - now) / 2 : 0;
    }
    DRIVER(cuCtxSetCurrent, NULL);
    return limited(soon);
}

static void look_at_open(struct meter *meter, uint64_t now)
{
    struct batch *batch, *next;

    for (batch = meter->open; batch; batch = next) {
        next = batch->next;
        if (batch->launches && now > batch->opened_ns + STALE_NS + batch->sum_ns)
            batch_give_up(meter, &meter->open, batch);
    }
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
        while (!meter->open && !meter->ended)
            pthread_cond_wait(&meter->work, &meter->lock);
        look_at_open(meter, batch_now());
        sleep_for(meter, look_at_ended(meter, batch_now()));
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
