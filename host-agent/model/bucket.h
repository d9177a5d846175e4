/* SPDX-License-Identifier: MIT */
/*
 * How fast something happens: a bucket that fills by one for each time, and leaks.
 */
#ifndef HEALTH_BUCKET_H
#define HEALTH_BUCKET_H

#include <glib.h>

/**
 * Bucket - zeroed: empty
 * @level: what is in it
 * @at: when that was so, microseconds
 * @seen: the counter that was added last
 * @known: there was one
 */
typedef struct {
    double level;
    gint64 at;
    guint64 seen;
    gboolean known;
} Bucket;

/*
 * Adds what @counter has grown by since the last call, after it has leaked one in each @leak_us
 * since. The first call adds nothing: it is not known when that was. A counter that has fallen has
 * begun anew.
 */
void bucket_fill(Bucket *bucket, guint64 counter, gint64 now_us, gint64 leak_us);

#endif
