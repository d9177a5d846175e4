/* SPDX-License-Identifier: MIT */
/* Modes by the clock: warns, then switches through SetMode. One timer, armed for the next event. */
#ifndef VGPUD_MODES_SCHEDULE_H
#define VGPUD_MODES_SCHEDULE_H

#include "host-agent/daemon/modes/modes.h"

typedef struct Schedule Schedule;

/* @modes is owned by the caller, and lives longer. Nothing is done before schedule_start(). */
Schedule *schedule_new(Host *host, Modes *modes);

void schedule_free(Schedule *schedule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Schedule, schedule_free)

/* Reads schedule.conf again. If it has an error, the previous content stays in force. */
gboolean schedule_reload(Schedule *schedule, GError **error);

/* Applies what was due last for each GPU, if it was missed, and begins to watch the clock. */
void schedule_start(Schedule *schedule);

#endif
