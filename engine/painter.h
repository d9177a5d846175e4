/* SPDX-License-Identifier: MIT */
/*
 * The thread that copies the picture. Reading a picture out of a card's memory takes up to 60 ms,
 * and no program's command may wait for that.
 *
 * It paints in small steps under a lock. Whoever holds the lock may change what it paints from and
 * to, or unmap it, and waits for one step at most. The thread opens no files and touches nothing
 * outside of its steps.
 */
#ifndef ENGINE_PAINTER_H
#define ENGINE_PAINTER_H

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>

/*
 * Paints a small part. @first: begins with all that is to be painted now. False: that is done. The
 * lock is held.
 */
typedef bool (*painter_step)(void *data, bool first);

/**
 * struct painter - locks are POSIX's, because the thread sanitizer does not see GLib's
 * @turn: who has it gets @lock next, so that the thread cannot take that again and again
 * @wanted: there is something to paint
 */
struct painter {
    pthread_mutex_t turn;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    GThread *thread;
    painter_step step;
    void *data;
    bool wanted;
    bool ending;
};

void painter_init(struct painter *painter, painter_step step, void *data);
void painter_clear(struct painter *painter);

/* Without them nothing is painted, except by painter_run(). The end waits for one step. */
void painter_start(struct painter *painter);
void painter_stop(struct painter *painter);

/* Takes the lock, and returns it. */
void painter_enter(struct painter *painter);
void painter_leave(struct painter *painter);

/* There is something to paint. The lock is held. */
void painter_wake(struct painter *painter);

/* Paints all of it now, on the calling thread. */
void painter_run(struct painter *painter);

#endif /* ENGINE_PAINTER_H */
