// SPDX-License-Identifier: MIT
/*
 * Markers of work that is not measured. No thread waits for them: whoever places one looks at those
 * before it. But when the first one of a context was passed, only its look can tell.
 */
#include "batch.h"
#include "real.h"

/* No more launches of a place are counted while there is no marker behind them. */
#define UNMARKED_MOST 4096u
/* So soon the first marker is looked at, and so little later than it is, in parts of its time. */
#define MARK_SOON_NS 50000u
#define MARK_LATE    8

/* NULL: there are not so many. */
static struct stamp *stamp_at(struct meter *meter, unsigned int at)
{
    struct stamp *stamp;

    pthread_mutex_lock(&meter->lock);
    stamp = at < meter->mark_count ? meter->marks[at].stamp : NULL;
    pthread_mutex_unlock(&meter->lock);
    return stamp;
}

static bool has_come(const struct meter *meter, const struct stamp *stamp)
{
    /* It has ended with its context. */
    if (!stamp->event)
        return true;
    return stamp->context != batch_aside(meter) &&
           DRIVER(cuEventQuery, stamp->event) != CUDA_ERROR_NOT_READY;
}

static struct mark take_out(struct meter *meter, unsigned int at)
{
    struct mark mark;

    pthread_mutex_lock(&meter->lock);
    mark = meter->marks[at];
    meter->mark_count--;
    for (unsigned int i = at; i < meter->mark_count; i++)
        meter->marks[i] = meter->marks[i + 1];
    pthread_mutex_unlock(&meter->lock);
    return mark;
}

void mark_look(struct meter *meter)
{
    unsigned int at = 0;
    struct stamp *stamp;

    while ((stamp = stamp_at(meter, at))) {
        struct mark mark;

        if (!has_come(meter, stamp)) {
            at++;
            continue;
        }
        mark = take_out(meter, at);
        governor_member_marked(meter->gpu->member, mark.class, mark.number,
                               stamp->event ? stamp_time(meter, stamp, clock_now()) : 0);
        stamp_put(meter, stamp);
    }
}

static void look_at_marks(void *data)
{
    struct meter *meter = data;

    /* Someone else looks. */
    if (pthread_mutex_trylock(&meter->looks))
        return;
    mark_look(meter);
    pthread_mutex_unlock(&meter->looks);
}

/* False: there is no room. */
static bool push_mark(struct meter *meter, const struct mark *mark)
{
    bool has_room;

    pthread_mutex_lock(&meter->lock);
    has_room = meter->mark_count < MARKS_MOST;
    if (has_room)
        meter->marks[meter->mark_count++] = *mark;
    pthread_mutex_unlock(&meter->lock);
    return has_room;
}

bool mark_place(struct meter *meter, enum governor_class class, const struct place *at,
                uint32_t *count)
{
    GovernorMember *member = meter->gpu->member;
    struct mark mark = {.class = class, .placed_ns = clock_now()};

    mark.number = governor_member_mark(member, class, *count - 1, look_at_marks, meter);
    if (!mark.number) {
        /* Another thread has placed one; or nobody wants to know, for as long as it may be. */
        *count = *count < UNMARKED_MOST ? *count : UNMARKED_MOST;
        return false;
    }
    mark.stamp = stamp_record(meter, at->context, at);
    if (mark.stamp && push_mark(meter, &mark)) {
        *count = 1;
        return true;
    }
    governor_member_unmarked(member, class, mark.number);
    stamp_put(meter, mark.stamp);
    return false;
}

/* Under the lock. */
static bool has_clock(const struct meter *meter, CUcontext context)
{
    for (unsigned int i = 0; i < CLOCKS; i++)
        if (meter->clocks[i].last && meter->clocks[i].last->context == context)
            return true;
    return false;
}

uint64_t mark_awaited_ns(const struct meter *meter, uint64_t now)
{
    for (unsigned int i = 0; i < meter->mark_count; i++) {
        const struct mark *mark = &meter->marks[i];

        if (mark->stamp->event && mark->stamp->context != batch_aside(meter) &&
            !has_clock(meter, mark->stamp->context))
            return (now - mark->placed_ns) / MARK_LATE + MARK_SOON_NS;
    }
    return 0;
}
