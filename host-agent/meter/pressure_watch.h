/* SPDX-License-Identifier: MIT */
/*
 * Keeps memory free on GPUs that have a water mark (water-mark= in gpus.conf), at the cost of
 * best-effort vGPUs and slices.
 */
#ifndef METER_PRESSURE_WATCH_H
#define METER_PRESSURE_WATCH_H

#include <glib.h>

#include "host-agent/daemon/slices/slices.h"

typedef struct PressureWatch PressureWatch;

/* @grace: seconds between two steps. All of them live longer. */
PressureWatch *pressure_watch_new(Host *host, Offers *offers, const Slices *slices, guint grace);

void pressure_watch_set_grace(PressureWatch *watch, guint grace);

void pressure_watch_free(PressureWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PressureWatch, pressure_watch_free)

/* @bus has systemd, which stops engines. */
void pressure_watch_connect(PressureWatch *watch, GDBusConnection *bus);

/* GPUs, their marks or slices may have changed. */
void pressure_watch_refresh(PressureWatch *watch);

/* Checks all GPUs as if it were that time, of the monotonic clock; for tests. */
void pressure_watch_look(PressureWatch *watch, gint64 now_us);

/* Bytes that should be free on the GPU; 0: not configured. */
guint64 pressure_watch_mark(const PressureWatch *watch, const Gpu *gpu);

/* Bytes in use on the GPU, as gpu_memory_used(). */
gboolean pressure_watch_used(const PressureWatch *watch, const Gpu *gpu, const GPtrArray *vgpus,
                             guint64 *bytes);

#endif
