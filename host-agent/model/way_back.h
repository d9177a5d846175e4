/* SPDX-License-Identifier: MIT */
/*
 * When a slice whose programs were suspended because memory was short goes on: when there has been
 * room for some time. It has no clock.
 */
#ifndef MODEL_WAY_BACK_H
#define MODEL_WAY_BACK_H

#include <glib.h>

/* There must be room for so long; twice as long after each return that was too early. */
#define WAY_BACK_S     60
#define WAY_BACK_MAX_S (16 * WAY_BACK_S)

/* A return after which memory was short again so soon was too early. */
#define WAY_BACK_EARLY_S 600

/**
 * WayBack - of one slice
 * @bytes: that its programs had of the GPU; 0: not known, and it does not return by itself
 * @wait_us: for so long there must be room; 0: WAY_BACK_S
 * @open_us: since when there is room; 0: there is none
 * @back_us: when it last returned, or was tried to; 0: never
 */
typedef struct {
    guint64 bytes;
    gint64 wait_us;
    gint64 open_us;
    gint64 back_us;
} WayBack;

/* Its programs, which have so many bytes, are suspended. */
void way_back_begin(WayBack *way, guint64 bytes, gint64 now_us);

/*
 * So many bytes are free on the GPU, and @mark should be. TRUE: it returns now, and the caller
 * begins that.
 */
gboolean way_back_is_open(WayBack *way, guint64 free, guint64 mark, gint64 now_us);

/* Another one has the room that there was. */
void way_back_close(WayBack *way);

/* It could not return. */
void way_back_fail(WayBack *way);

#endif
