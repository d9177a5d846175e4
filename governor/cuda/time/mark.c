// SPDX-License-Identifier: MIT
/*
 * Markers of work that is not measured. No thread waits for them: whoever places one looks at those
 * before it.
 */
#include "batch.h"
#include "real.h"

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

static void look(void *data)
{
    struct meter *meter = data;

    /* Someone else looks. */
    if (pthread_mutex_trylock(&meter->looks))
        return;
    mark_look(meter);
    pthread_mutex_unlock(&meter->looks);
}

static bool push(struct meter *meter, const struct mark *mark)
{
    bool has_room;

    pthread_mutex_lock(&meter->lock);
    has_room = meter->mark_count < MARKS_MOST;
    if (has_room)
        meter->marks[meter->mark_count++] = *mark;
    pthread_mutex_unlock(&meter->lock);
    return has_room;
}

void mark_place(struct gpu *gpu, enum governor_class class, const struct place *at, uint64_t *count)
{
    struct meter *meter = meter_of(gpu);
    struct mark mark = {.class = class};
    CUstreamCaptureMode mode;

    /* The launch that comes behind the marker is counted already. */
    if (!meter || *count < 2)
        return;
    meter_relax(&mode);
    mark.number = governor_member_mark(gpu->member, class, *count - 1, look, meter);
    if (mark.number)
        mark.stamp = stamp_record(meter, at->context, at);
    if (mark.number && (!mark.stamp || !push(meter, &mark))) {
        governor_member_marked(gpu->member, class, mark.number, 0);
        stamp_put(meter, mark.stamp);
    }
    if (mark.number)
        *count = 1;
    meter_unrelax(&mode);
}
