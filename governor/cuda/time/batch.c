// SPDX-License-Identifier: MIT
#include "batch.h"

#include <stdlib.h>
#include <sys/param.h>

#include "real.h"

/* One that is kept, or a new one; NULL: the driver refused. */
static struct stamp *stamp_take(struct meter *meter, CUcontext context)
{
    struct stamp **at = &meter->spares, *stamp;

    pthread_mutex_lock(&meter->lock);
    while (*at && (*at)->context != context)
        at = &(*at)->next;
    stamp = *at;
    if (stamp) {
        *at = stamp->next;
        stamp->uses = 1;
        meter->spare_count--;
    }
    pthread_mutex_unlock(&meter->lock);
    if (stamp || !(stamp = malloc(sizeof(*stamp))))
        return stamp;
    *stamp = (struct stamp){.context = context, .uses = 1};
    if (DRIVER(cuEventCreate, &stamp->event, 0) == CUDA_SUCCESS)
        return stamp;
    free(stamp);
    return NULL;
}

struct stamp *stamp_record(struct meter *meter, CUcontext context, const struct place *at)
{
    struct stamp *stamp = stamp_take(meter, context);
    CUresult result;

    if (!stamp)
        return NULL;
    if (at->per_thread)
        result = DRIVER(cuEventRecord_ptsz, stamp->event, at->stream);
    else
        result = DRIVER(cuEventRecord, stamp->event, at->stream);
    if (result == CUDA_SUCCESS)
        return stamp;
    stamp_put(meter, stamp);
    return NULL;
}

void stamp_put(struct meter *meter, struct stamp *stamp)
{
    bool is_used, is_kept;

    if (!stamp)
        return;
    pthread_mutex_lock(&meter->lock);
    is_used = --stamp->uses > 0;
    is_kept = !is_used && stamp->event && meter->spare_count < SPARES_MOST;
    if (is_kept) {
        stamp->next = meter->spares;
        meter->spares = stamp;
        meter->spare_count++;
    }
    pthread_mutex_unlock(&meter->lock);
    if (is_used || is_kept)
        return;
    /* One that may be ending with its context is left to that. */
    if (stamp->event && stamp->context != batch_aside(meter))
        DRIVER(cuEventDestroy_v2, stamp->event);
    free(stamp);
}

struct place batch_place(CUcontext context, CUstream stream, bool per_thread)
{
    static _Atomic uint64_t threads;
    static _Thread_local uint64_t number;
    struct place at = {.context = context, .stream = stream, .per_thread = per_thread};

    if (stream != CU_STREAM_PER_THREAD && (stream || !per_thread))
        return at;
    /* An address of the thread's would be another one's when it has ended. */
    if (!number)
        number = ++threads;
    at.thread = number;
    return at;
}

struct batch *batch_find(struct batch *list, const struct place *at)
{
    while (list && !batch_same_place(&list->at, at))
        list = list->next;
    return list;
}

void batch_unlink(struct batch **list, const struct batch *batch)
{
    while (*list != batch)
        list = &(*list)->next;
    *list = batch->next;
}

void batch_discard(struct meter *meter, struct batch *batch)
{
    stamp_put(meter, batch->begin);
    stamp_put(meter, batch->end);
    free(batch);
}

bool batch_take_out(struct meter *meter, struct batch *batch)
{
    struct batch **last = &meter->ended;

    batch_unlink(&meter->open, batch);
    batch->next = NULL;
    batch->taken = true;
    batch->closing = true;
    batch->gap_until = clock_now();
    while (*last)
        last = &(*last)->next;
    *last = batch;
    return !batch->pending;
}

/* @end: NULL: there is none. */
static void close_with(struct meter *meter, struct batch *batch, struct stamp *end)
{
    struct stamp *before;
    bool is_gone, is_pending;

    pthread_mutex_lock(&meter->lock);
    before = batch->end != end ? batch->end : NULL;
    batch->end = end;
    batch->closing = false;
    is_gone = batch->gone;
    is_pending = is_gone && batch->pending;
    batch->retired = is_pending;
    if (end)
        end->context = batch->at.context;
    /* Its events ended with its context. */
    if (end && is_gone)
        end->event = NULL;
    pthread_cond_broadcast(&meter->work);
    pthread_mutex_unlock(&meter->lock);
    stamp_put(meter, before);
    if (!is_gone)
        return;
    batch_charge(meter, &batch->work, batch->work.estimate_ns, 0);
    if (!is_pending)
        batch_discard(meter, batch);
}

void batch_close_unseen(struct meter *meter, struct batch *batch)
{
    /* It has none after its last launch, or one right behind that. */
    batch->gap_until = batch->launched_ns;
    close_with(meter, batch, batch->end);
}

/* Until @until, the program took much longer to launch it than the work should take. */
static bool is_sparse(const struct batch *batch, uint64_t until)
{
    return until - batch->work.submitted_at > 2 * batch->work.estimate_ns + SPARSE_NS;
}

/* A batch that could have become longer holds no more room on the GPU than it needs. */
static void revise_debit(struct meter *meter, struct batch *batch)
{
    uint64_t ns = batch->work.estimate_ns;

    if (ns > batch->debited_ns - batch->debited_ns / 8 &&
        ns < batch->debited_ns + batch->debited_ns / 8)
        return;
    batch->work.debit = governor_member_revise(meter->gpu->member, batch->work.debit, ns);
    batch->debited_ns = ns;
}

/*
 * Another thread may launch on the same stream before this is recorded. Such a launch counts with
 * this batch, and the next batch counts from here: together they are charged what they took.
 */
void batch_close(struct meter *meter, struct batch *batch)
{
    const struct place *at = &batch->at;
    bool sparse = is_sparse(batch, batch->gap_until);
    struct stamp *end;

    revise_debit(meter, batch);
    if (sparse)
        batch->was_busy =
            (at->per_thread ? DRIVER(cuStreamQuery_ptsz, at->stream)
                            : DRIVER(cuStreamQuery, at->stream)) == CUDA_ERROR_NOT_READY;
    end = stamp_record(meter, batch->made_in, at);
    /* While it had work, it did not wait for the program. Else until here. */
    if (sparse)
        batch->gap_until = batch->was_busy ? batch->launched_ns : clock_now();
    close_with(meter, batch, end);
}

/* Nanoseconds from @begin to @end, which may be before it. False: the driver does not say. */
static bool ns_between(const struct stamp *begin, const struct stamp *end, double *ns)
{
    float ms = 0;

    if (!begin || DRIVER(cuEventElapsedTime, &ms, begin->event, end->event) != CUDA_SUCCESS)
        return false;
    *ns = (double)ms * 1e6;
    return true;
}

/* Of the context, or the one that was not used for the longest time. */
static struct context_clock *clock_of(struct meter *meter, CUcontext context)
{
    struct context_clock *oldest = &meter->clocks[0];

    for (unsigned int i = 0; i < CLOCKS; i++) {
        struct context_clock *clock = &meter->clocks[i];

        if (clock->last && clock->last->context == context)
            return clock;
        if (clock->seen_ns < oldest->seen_ns)
            oldest = clock;
    }
    return oldest;
}

uint64_t stamp_time(struct meter *meter, struct stamp *stamp, uint64_t now)
{
    struct context_clock *clock = clock_of(meter, stamp->context);
    struct stamp *last = clock->last;
    double after = 0;
    uint64_t at;

    if (!last || last->context != stamp->context || !ns_between(last, stamp, &after)) {
        event_clock_restart(&clock->clock);
        after = 0;
        clock->last = NULL;
    }
    at = event_clock_see(&clock->clock, after, now);
    clock->seen_ns = now;
    if (clock->last && after <= 0)
        return at;
    event_clock_advance(&clock->clock, after);
    stamp_put(meter, last);
    pthread_mutex_lock(&meter->lock);
    clock->last = stamp;
    stamp->uses++;
    pthread_mutex_unlock(&meter->lock);
    return at;
}

/**
 * struct measure - of a batch that has ended
 * @end_at: by the host's clock
 * @own_ns: until then, less what the program took to launch, and less what was others'
 * @launches: that took so long: if the program was slow and the GPU was busy at last, the last one
 * @is_guess: nothing is to be learnt from it
 */
struct measure {
    uint64_t end_at;
    uint64_t own_ns;
    unsigned int launches;
    bool is_guess;
};

/*
 * If the program took much longer to launch than the work should take, the GPU has waited in
 * between, but for no longer than that. So it has if it had nothing to do before, because the slice
 * was held back: then it waited for the first launches.
 */
static void take_off_gaps(const struct batch *batch, struct measure *measure)
{
    uint64_t ns = measure->own_ns, sum = batch->work.estimate_ns, known;
    uint64_t gaps = batch->gap_until - batch->work.submitted_at;

    if (is_sparse(batch, batch->gap_until)) {
        known = MIN(ns, 2 * sum);
        measure->launches = batch->was_busy ? 1 : batch->launches;
    } else if (batch->work.waited_for_cap) {
        known = MIN(ns, sum);
        gaps = MIN(batch->launched_ns - batch->work.submitted_at, RAMP_NS);
    } else {
        return;
    }
    measure->own_ns = ns > gaps && ns - gaps > known ? ns - gaps : known;
    measure->is_guess = measure->own_ns == known;
}

static struct measure measure_batch(struct meter *meter, const struct batch *batch, uint64_t now)
{
    uint64_t seen_ns = meter->seen_ns[batch->work.class];
    uint64_t from = batch->work.submitted_at > seen_ns ? batch->work.submitted_at : seen_ns;
    struct measure measure = {.launches = batch->launches};
    double ns;

    if (ns_between(batch->begin, batch->end, &ns))
        measure.own_ns = ns > 0 ? (uint64_t)ns : 0;
    else
        measure.own_ns = now > from ? now - from : 0;
    take_off_gaps(batch, &measure);
    measure.own_ns = lane_own(&batch->work, measure.own_ns, now);
    measure.end_at = stamp_time(meter, batch->end, now);
    meter->seen_ns[batch->work.class] = now;
    return measure;
}

/*
 * How long one launch takes: what is left of its time without that of others that ended meanwhile,
 * and at least what was charged for it. So streams that get on at once are not taken for as many
 * times as long.
 */
static void learn_batch(struct meter *meter, const struct batch *batch,
                        const struct measure *measure, uint64_t charged)
{
    uint64_t *shares = &meter->shares_ns[batch->work.class], others = *shares - batch->shares_ns;
    uint64_t rest = measure->own_ns > others ? measure->own_ns - others : 0;

    *shares += charged;
    if (!lane_teaches(meter->gpu->member, &batch->work) || batch->work.behind_ns || batch->mixed ||
        measure->is_guess || !batch->launches)
        return;
    learn_add(&meter->learned, batch->key, 0,
              (rest > charged ? rest : charged) / measure->launches);
}

uint64_t batch_charge(struct meter *meter, const struct lane_work *work, uint64_t ns,
                      uint64_t end_at)
{
    GovernorMember *member = meter->gpu->member;
    uint64_t owed =
        atomic_exchange_explicit(&meter->gpu->owed[work->class], 0, memory_order_relaxed);

    if (owed)
        governor_member_also(member, work->class, owed);
    return lane_end(member, work, ns, end_at);
}

void batch_retire(struct meter *meter, struct batch *batch)
{
    struct measure measured = {.own_ns = batch->work.estimate_ns, .is_guess = true};
    uint64_t charged;
    bool is_pending;

    if (batch->end)
        measured = measure_batch(meter, batch, clock_now());
    charged = batch_charge(meter, &batch->work, measured.own_ns, measured.end_at);
    pthread_mutex_lock(&meter->lock);
    batch_unlink(&meter->ended, batch);
    learn_batch(meter, batch, &measured, charged);
    is_pending = batch->retired = batch->pending > 0;
    pthread_mutex_unlock(&meter->lock);
    if (!is_pending)
        batch_discard(meter, batch);
}
