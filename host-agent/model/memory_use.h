/* SPDX-License-Identifier: MIT */
/* How much of a GPU's memory a slice has in use, and for how long: what it is expected to use. */
#ifndef MODEL_MEMORY_USE_H
#define MODEL_MEMORY_USE_H

#include <glib.h>

#define MEMORY_STEPS 48

/* An hour of the day, in UTC, has a MemoryUse of its own, of so many days. */
#define MEMORY_HOURS_OF_DAY 24
#define MEMORY_DAYS         7

/**
 * MemoryUse - zeroed: nothing is known
 * @most: bytes
 * @seconds: by the bytes that were in use: up to 64 MiB, and then in steps of a fourth of an octave
 */
typedef struct {
    guint64 most;
    guint32 seconds[MEMORY_STEPS];
} MemoryUse;

/* So many bytes were in use for so long. */
void memory_use_add(MemoryUse *use, guint64 bytes, guint seconds);

void memory_use_join(MemoryUse *use, const MemoryUse *other);

gboolean memory_use_is_known(const MemoryUse *use);

/* What was not exceeded in 99 % of the time, rounded up to a step, and a tenth more; at least 1. */
guint64 memory_use_expect(const MemoryUse *use);

#endif
