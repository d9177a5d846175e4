/* SPDX-License-Identifier: MIT */
/*
 * systemd's timers for the schedule: vgpu-schedule@NAME-CHECKSUM.timer, without a file, starts the
 * service of that name, which calls RunSchedule. They go on while vgpud does not run, and start it.
 */
#ifndef VGPUD_MODES_SCHEDULE_TIMERS_H
#define VGPUD_MODES_SCHEDULE_TIMERS_H

#include <gio/gio.h>

#include "lib/schedule_conf.h"

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

#endif
