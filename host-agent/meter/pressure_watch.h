/* SPDX-License-Identifier: MIT */
/*
 * Watches the free memory of GPUs that have a water mark (water-mark= in gpus.conf), and tells
 * vgpud of those that are short of it.
 */
#ifndef METER_PRESSURE_WATCH_H
#define METER_PRESSURE_WATCH_H

#include "host-agent/meter/agent_link.h"
#include "host-agent/meter/host_view.h"

typedef struct PressureWatch PressureWatch;

/* Both live longer. */
PressureWatch *pressure_watch_new(const HostView *view, const AgentLink *agent);

void pressure_watch_free(PressureWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PressureWatch, pressure_watch_free)

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
