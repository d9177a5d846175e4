/* SPDX-License-Identifier: MIT */
/* The schedule's timers, and the switches that it makes. */
#ifndef VGPUD_MODES_SCHEDULED_SWITCH_H
#define VGPUD_MODES_SCHEDULED_SWITCH_H

#include <gio/gio.h>

#include "lib/schedule_conf.h"
#include "host-agent/daemon/modes/modes.h"

/*
 * systemd's timers for the schedule: vgpu-schedule@NAME-CHECKSUM.timer, without a file, starts the
 * service of that name, which calls RunSchedule. They go on while vgpud does not run, and start it.
 */

/**
 * ScheduleTimer
 * @instance: NAME-CHECKSUM; another one if the time or the description is another
 * @entry: index of the entry
 * @warns: it announces the entry; else it executes it
 */
typedef struct {
    char *instance;
    char *calendar;
    char *description;
    guint entry;
    gboolean warns;
} ScheduleTimer;

/*
 * Of ScheduleTimer: those of all entries. A warning is due once, before @next of its entry, which
 * must be up to date.
 */
GPtrArray *schedule_timers_of(const GPtrArray *entries);

/* NULL: none (any more). */
const ScheduleTimer *schedule_timers_find(const GPtrArray *timers, const char *instance);

/*
 * Stops systemd's other timers of the schedule, and starts these if they are missing, without
 * waiting. @timers: not changed any more, as it may be needed for some time.
 */
void schedule_timers_sync(GPtrArray *timers, GDBusConnection *bus, GCancellable *cancellable);

/* Mode switches of the schedule whose time has come. */

typedef struct ScheduledSwitches ScheduledSwitches;

/* Both live longer. */
ScheduledSwitches *scheduled_switches_new(Host *host, Modes *modes);

void scheduled_switches_free(ScheduledSwitches *switches);

/*
 * Begins the switch. An earlier one of the schedule that still waits for the GPU is skipped. If
 * another one of the GPU is under way, the entry stays due. @when: it was, seconds since 1970
 */
void scheduled_switches_add(ScheduledSwitches *switches, const ScheduleEntry *entry, gint64 when);

/* When the last entry of the GPU was due that was executed, or is being executed; 0: none. */
gint64 scheduled_switches_last(const ScheduledSwitches *switches, const char *gpu);

#endif
