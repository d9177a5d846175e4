// SPDX-License-Identifier: MIT
#include "painter.h"

/* No VMM shows more than 60 pictures a second. */
#define FRAME_TIME (G_TIME_SPAN_SECOND / 60)

void painter_init(struct painter *painter, painter_step step, void *data)
{
    pthread_condattr_t attr;

    *painter = (struct painter){.step = step, .data = data};
    pthread_mutex_init(&painter->turn, NULL);
    pthread_mutex_init(&painter->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&painter->woken, &attr);
    pthread_condattr_destroy(&attr);
}

void painter_clear(struct painter *painter)
{
    painter_stop(painter);
    pthread_mutex_destroy(&painter->turn);
    pthread_mutex_destroy(&painter->lock);
    pthread_cond_destroy(&painter->woken);
}

void painter_enter(struct painter *painter)
{
    pthread_mutex_lock(&painter->turn);
    pthread_mutex_lock(&painter->lock);
    pthread_mutex_unlock(&painter->turn);
}

void painter_leave(struct painter *painter)
{
    pthread_mutex_unlock(&painter->lock);
}

void painter_wake(struct painter *painter)
{
    painter->wanted = true;
    pthread_cond_signal(&painter->woken);
}

/* The lock is held, and is free between two steps. */
static void paint_damage(struct painter *painter)
{
    painter->wanted = false;
    for (bool first = true; !painter->ending && painter->step(painter->data, first);
         first = false) {
        painter_leave(painter);
        painter_enter(painter);
    }
}

void painter_run(struct painter *painter)
{
    painter_enter(painter);
    if (painter->wanted)
        paint_damage(painter);
    painter_leave(painter);
}

static void *paint_until_end(void *data)
{
    struct painter *painter = data;
    struct timespec until = {0};
    gint64 next = 0;

    painter_enter(painter);
    while (!painter->ending) {
        if (!painter->wanted) {
            pthread_cond_wait(&painter->woken, &painter->lock);
        } else if (g_get_monotonic_time() < next) {
            pthread_cond_timedwait(&painter->woken, &painter->lock, &until);
        } else {
            next = g_get_monotonic_time() + FRAME_TIME;
            until = (struct timespec){.tv_sec = next / G_USEC_PER_SEC,
                                      .tv_nsec = next % G_USEC_PER_SEC * 1000};
            paint_damage(painter);
        }
    }
    painter_leave(painter);
    return NULL;
}

void painter_start(struct painter *painter)
{
    painter->thread = g_thread_new("painter", paint_until_end, painter);
}

void painter_stop(struct painter *painter)
{
    if (!painter->thread)
        return;
    painter_enter(painter);
    painter->ending = true;
    pthread_cond_signal(&painter->woken);
    painter_leave(painter);
    g_thread_join(g_steal_pointer(&painter->thread));
    painter->ending = false;
}
