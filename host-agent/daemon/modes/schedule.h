/* SPDX-License-Identifier: MIT */
/*
 * Modes by the clock: warns, then switches by SetMode's own way. One timer, armed for what comes
 * next.
 */
#ifndef VGPUD_MODES_SCHEDULE_H
#define VGPUD_MODES_SCHEDULE_H

#include "host-agent/daemon/modes/modes.h"

typedef struct Schedule Schedule;

/* @modes stays the caller's, and lives longer. Nothing is done before schedule_start(). */
Schedule *schedule_new(Host *host, Modes *modes);

void schedule_free(Schedule *schedule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Schedule, schedule_free)

/* Reads schedule.conf anew. Where it is wrong what was read before counts on. */
gboolean schedule_reload(Schedule *schedule, GError **error);

/* Does what was due last for each GPU, where that was missed, and begins to watch the clock. */
void schedule_start(Schedule *schedule);

#endif
