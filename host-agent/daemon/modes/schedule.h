/* SPDX-License-Identifier: MIT */
/*
 * Modes by the clock: schedule.conf's entries, the warnings before them, and what was missed. The
 * clock is systemd's (schedule_timers.h), whose timers call RunSchedule.
 */
#ifndef VGPUD_MODES_SCHEDULE_H
#define VGPUD_MODES_SCHEDULE_H

#include "host-agent/daemon/modes/modes.h"

typedef struct Schedule Schedule;

/* @modes is owned by the caller, and lives longer. Nothing is done before schedule_start(). */
Schedule *schedule_new(Host *host, Modes *modes);

void schedule_free(Schedule *schedule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Schedule, schedule_free)

/*
 * Reads schedule.conf again, and asks systemd about its times. If it has an error, the previous
 * content stays in force.
 */
gboolean schedule_reload(Schedule *schedule, GError **error);

/*
 * Makes systemd's timers on @bus, and applies what was due last for each GPU, if it was missed.
 */
void schedule_start(Schedule *schedule, GDBusConnection *bus);

#endif
