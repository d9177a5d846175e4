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
 * For how long the GPU may have waited for the program between begin and end. If the end was
 * recorded while there was work, only before the last launch.
 */
static uint64_t gaps_of(const struct batch *batch)
{
    return (batch->was_busy ? batch->launched_ns : batch->closed_ns) - batch->opened_ns;
}

static bool is_sparse(const struct batch *batch, uint64_t gaps)
{
    return gaps > 2 * batch->sum_ns + SPARSE_NS;
}

static bool is_busy(const struct batch *batch)
{
    return (batch->per_thread ? DRIVER(cuStreamQuery_ptsz, batch->stream)
                              : DRIVER(cuStreamQuery, batch->stream)) == CUDA_ERROR_NOT_READY;
}

/*
 * Another thread may launch on the same stream before this is recorded. Such a launch counts with
 * this batch, and the next batch counts from here: together they are charged what they took.
 */
void batch_close(struct meter *meter, struct batch *batch)
{
    bool sparse = is_sparse(batch, gaps_of(batch));
    CUevent end;

    batch->was_busy = sparse && is_busy(batch);
    end = batch_record(meter, batch->made_in, batch->stream, batch->per_thread);
    /* Until here there was nothing to do. */
    if (sparse && !batch->was_busy)
        batch->closed_ns = batch_now();
    close_with(meter, batch, end);
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

/* So many other streams are looked at without the lock. */
#define OTHERS_MOST 32

/* A batch that may be running, and how much of its time since its begin is believed to be work. */
struct other {
    CUevent begin;
    uint64_t most_ns;
};

static bool is_first_of(const struct batch *list, const struct batch *batch)
{
    while (list && list != batch && !batch_same_stream(list, batch))
        list = list->next;
    return !list || list == batch;
}

/*
 * Batches of the same class that may be running beside @batch: the first one of each stream, but
 * for the first @skip. What is still open may have ended long ago.
 */
static unsigned int list_others(struct meter *meter, const struct batch *batch, unsigned int skip,
                                struct other others[OTHERS_MOST])
{
    unsigned int count = 0;

    pthread_mutex_lock(&meter->lock);
    for (int open = 0; open < 2; open++) {
        const struct batch *list = open ? meter->open : meter->ended;

        for (const struct batch *other = list; other && count < OTHERS_MOST; other = other->next) {
            if (other->context != batch->context || other->class != batch->class ||
                !other->launches || batch_same_stream(other, batch) ||
                !is_first_of(meter->ended, other) || !is_first_of(list, other))
                continue;
            if (skip) {
                skip--;
                continue;
            }
            others[count++] = (struct other){other->begin, open ? 2 * other->sum_ns : UINT64_MAX};
        }
    }
    pthread_mutex_unlock(&meter->lock);
    return count;
}

/* How long others had been running when @end came; 0: none was. */
static uint64_t ran_beside(struct meter *meter, const struct batch *batch, CUevent end)
{
    struct other others[OTHERS_MOST];
    unsigned int count, skip = 0;
    uint64_t most = 0;

    do {
        count = list_others(meter, batch, skip, others);
        for (unsigned int i = 0; i < count; i++) {
            uint64_t ns = between(others[i].begin, end);

            ns = ns == UINT64_MAX ? 0 : least(ns, others[i].most_ns);
            most = ns > most ? ns : most;
        }
        skip += count;
    } while (count == OTHERS_MOST);
    return most;
}

/*
 * The program took much longer to launch than the work should take. So the GPU has waited in
 * between, but for no longer than that. @is_guess: what is left is no more than an upper bound.
 */
static uint64_t without_gaps(const struct batch *batch, uint64_t ns, uint64_t gaps, bool *is_guess)
{
    uint64_t known = least(ns, 2 * batch->sum_ns), rest = ns > gaps ? ns - gaps : 0;

    *is_guess = is_sparse(batch, gaps) && rest <= known;
    if (!is_sparse(batch, gaps))
        return ns;
    return rest > known ? rest : known;
}

/**
 * struct measure - of a batch that has ended
 * @end_at: by the host's clock
 * @own_ns: from its begin to its end, less what the program took to launch
 * @ns: what it is charged: for how long any work of the process ran since the last end
 * @share_ns: the part of @own_ns since the last end
 * @launches: that took @own_ns: if the program was slow and the GPU was busy at last, the last one
 * @is_guess: nothing is to be learnt from it
 */
struct measure {
    uint64_t end_at;
    uint64_t own_ns;
    uint64_t ns;
    uint64_t share_ns;
    unsigned int launches;
    bool is_guess;
};

/*
 * When @end was, by the host's clock. It is where the next one's time begins, unless a later one
 * was seen before. @since: how long after the last one; UINT64_MAX: there is none.
 */
static uint64_t see_end(struct meter *meter, struct batch *batch, CUevent end, uint64_t now,
                        uint64_t *since)
{
    struct ends *ends = &meter->ends[batch->class];
    bool is_known = ends->last.context == batch->context && ends->last.event;
    float ms = 0;
    uint64_t at;

    if (is_known && DRIVER(cuEventElapsedTime, &ms, ends->last.event, end) != CUDA_SUCCESS)
        is_known = false;
    *since = !is_known ? UINT64_MAX : ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    if (!is_known)
        event_clock_restart(&ends->clock);
    at = event_clock_see(&ends->clock, (double)ms * 1e6, now);
    ends->seen_ns = now;
    if (is_known && ms <= 0)
        return at;
    event_clock_advance(&ends->clock, (double)ms * 1e6);
    batch_give_event(meter, ends->last.context, ends->last.event);
    ends->last = (struct spare){batch->context, end};
    batch->end = NULL;
    return at;
}

/*
 * Time counts once, for the end that comes first: since the last end, as far back as work was
 * running, of this stream or of another. What others had submitted before is theirs, as far as the
 * host's clock can tell.
 */
static struct measure measure(struct meter *meter, struct batch *batch, CUevent end, uint64_t now)
{
    uint64_t seen_ns = meter->ends[batch->class].seen_ns;
    uint64_t from = batch->opened_ns > seen_ns ? batch->opened_ns : seen_ns;
    uint64_t others_end = batch->opened_ns + batch->behind_ns;
    uint64_t after = now > others_end ? now - others_end : 0;
    uint64_t own = between(batch->begin, end), beside = ran_beside(meter, batch, end), since;
    struct measure measured = {.end_at = see_end(meter, batch, end, now, &since)};

    measured.launches = batch->was_busy && is_sparse(batch, gaps_of(batch)) ? 1 : batch->launches;
    if (own == UINT64_MAX)
        own = now > from ? now - from : 0;
    own = without_gaps(batch, own, gaps_of(batch), &measured.is_guess);
    if (batch->behind_ns) {
        after = after > batch->sum_ns ? after : batch->sum_ns;
        own = least(own, after);
        beside = least(beside, after);
    }
    measured.own_ns = own;
    measured.ns = least(own > beside ? own : beside, since);
    measured.share_ns = least(own, since);
    return measured;
}

/*
 * How long one launch takes: what is left of its time without that of others that ended meanwhile,
 * and at least its share. So streams that get on at once are not taken for as many times as long.
 */
static void learn(struct meter *meter, const struct batch *batch, const struct measure *measure)
{
    struct ends *ends = &meter->ends[batch->class];
    uint64_t others = ends->shares_ns - batch->shares_ns;
    uint64_t rest = measure->own_ns > others ? measure->own_ns - others : 0;

    ends->shares_ns += measure->share_ns;
    if (governor_member_passes(meter->gpu->member, batch->class) != batch->passes || batch->mixed ||
        batch->behind_ns || measure->is_guess || !batch->launches)
        return;
    costs_learn(&meter->costs, batch->key,
                (rest > measure->share_ns ? rest : measure->share_ns) / measure->launches);
}

void batch_retire(struct meter *meter, struct batch *batch, CUevent end)
{
    struct measure measured = {0};

    if (end)
        measured = measure(meter, batch, end, batch_now());
    pthread_mutex_lock(&meter->lock);
    batch_unlink(&meter->ended, batch);
    if (end)
        learn(meter, batch, &measured);
    pthread_mutex_unlock(&meter->lock);
    if (end)
        work_ran(meter->gpu, batch->class, batch->debit, measured.end_at - measured.ns,
                 measured.end_at);
    else
        work_end(meter->gpu, batch->class, batch->debit, batch->sum_ns);
    batch_discard(meter, batch);
}
