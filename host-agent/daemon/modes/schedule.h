/* SPDX-License-Identifier: MIT */
/*
 * Modes and pools by the clock: schedule.conf's entries, the warnings before them, and what was
 * missed. The clock is systemd's (scheduled_switch.h), whose timers call RunSchedule.
 */
#ifndef VGPUD_MODES_SCHEDULE_H
#define VGPUD_MODES_SCHEDULE_H

#include <gio/gio.h>

#include "host-agent/daemon/modes/modes.h"
#include "host-agent/daemon/modes/scheduled_switch.h"

typedef struct Schedule Schedule;

/* Both live longer. Nothing is done before schedule_start(). */
Schedule *schedule_new(Host *host, Modes *modes);

/* Before the operations end: a switch that they abandon is not handled, but due again. */
void schedule_free(Schedule *schedule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Schedule, schedule_free)

/*
 * What schedule.conf says now, of ScheduleEntry; systemd has checked its times. NULL with
 * AGENT_ERROR_INVALID: it has an error. Changes nothing.
 */
GPtrArray *schedule_read(const Schedule *schedule, GError **error);

/* From now on they are in force. @entries: taken, from schedule_read(). */
void schedule_take(Schedule *schedule, GPtrArray *entries);

/*
 * Makes systemd's timers on @bus, and applies what was due last for each GPU, if it was missed.
 */
void schedule_start(Schedule *schedule, GDBusConnection *bus);

/*
 * Which of several calendar expressions elapsed last. systemd tells only what comes next, so it is
 * asked again and again, from later times.
 */

/**
 * LastDue
 * @which: number of the expression; of several at the same time, the last one; -1: none elapsed
 * @when: seconds since 1970
 */
typedef struct {
    int which;
    gint64 when;
} LastDue;

/* @error: systemd could not be asked, or it was cancelled; else @last is known. */
typedef void (*LastDueFunc)(const LastDue *last, const GError *error, void *data);

/* In (@after, @until]. @func is called once, from the main loop. @expressions: as calendar_ask().
 */
void last_due_find(const char *const *expressions, gint64 after, gint64 until,
                   GCancellable *cancellable, LastDueFunc func, void *data);

#endif
