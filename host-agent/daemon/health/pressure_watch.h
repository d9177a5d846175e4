/* SPDX-License-Identifier: MIT */
/*
 * Keeps free memory on GPUs that have a water mark (water-mark= in gpus.conf), at the cost of
 * best-effort vGPUs.
 */
#ifndef VGPUD_PRESSURE_WATCH_H
#define VGPUD_PRESSURE_WATCH_H

#include "host-agent/daemon/slices/slices.h"

typedef struct PressureWatch PressureWatch;

/* @grace: seconds between two steps. All of them live longer. */
PressureWatch *pressure_watch_new(Host *host, Offers *offers, const Slices *slices, guint grace);

void pressure_watch_set_grace(PressureWatch *watch, guint grace);

void pressure_watch_free(PressureWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PressureWatch, pressure_watch_free)

/* systemd, which stops engines, is on @bus. */
void pressure_watch_connect(PressureWatch *watch, GDBusConnection *bus);

/* GPUs, their marks or slices may have changed. */
void pressure_watch_refresh(PressureWatch *watch);

/* Looks at all GPUs as if it were then, of the clock that only goes forward; for tests. */
void pressure_watch_look(PressureWatch *watch, gint64 now_us);

/* Bytes that should be free on the GPU; 0: nobody said. */
guint64 pressure_watch_mark(const PressureWatch *watch, const Gpu *gpu);

#endif
