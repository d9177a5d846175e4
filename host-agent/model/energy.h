/* SPDX-License-Identifier: MIT */
/*
 * A GPU's energy, from its own counter, split among its slices. Between two readings, the time in
 * which the GPU worked goes by the slices' measured GPU time, and the rest by what is promised to
 * them: what nobody is promised is nobody's. A slice that alone has submitted work in between is
 * not measured; it has all of the energy. It has no clock.
 */
#ifndef MODEL_ENERGY_H
#define MODEL_ENERGY_H

#include <glib.h>

typedef struct Energy Energy;

Energy *energy_new(void);

void energy_free(Energy *energy);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Energy, energy_free)

/* Times are in microseconds, of any clock that does not go back; energy in microjoules. */

/* The slice exists, with @promised bytes of its GPU; from @now on, if it is not known yet. */
void energy_note(Energy *energy, const char *uuid, const char *gpu, guint64 promised, gint64 now);

void energy_forget(Energy *energy, const char *uuid);

/* Its counters now, which may restart; before energy_read(). Ignored if it is not known. */
void energy_count(Energy *energy, const char *uuid, guint64 gpu_ns, guint64 submissions);

/*
 * The GPU's counter is @uj, and @whole bytes of it may be promised. The first reading of a GPU, and
 * one that is less than the last, only set the start. One with the last one's time is that one.
 */
void energy_read(Energy *energy, const char *gpu, guint64 uj, guint64 whole, gint64 now);

/* Forgets all GPUs and slices. */
void energy_clear(Energy *energy);

/* What the slice has used since the last call. FALSE: its GPU has not been read since its start. */
gboolean energy_take(Energy *energy, const char *uuid, guint64 *uj);

#endif
