/* SPDX-License-Identifier: MIT */
/* systemd: its units, and its calendar expressions. */
#ifndef LIB_SYSTEMD_H
#define LIB_SYSTEMD_H

#include <glib.h>
#include <gio/gio.h>

#include "lib/host_root.h"

/* "vgpu-engine@UUID.service", "vgpu-guard@UUID.service". To be freed. */
char *engine_unit_name(const char *uuid);
char *guard_unit_name(const char *uuid);

/* Their cgroups' directories. To be freed. */
char *engine_unit_cgroup(const char *uuid);
char *guard_unit_cgroup(const char *uuid);

/* CPU time that its processes have used, microseconds; 0: none, or it does not run. */
guint64 engine_unit_cpu_us(HostRoot *root, const char *uuid);

/* Their process ids; empty if it does not run. */
GStrv engine_unit_processes(HostRoot *root, const char *uuid);

/* Starts and stops systemd's units without waiting. */
/* @method: StartUnit, StopUnit. If systemd refuses, that is logged. */
void unit_call(GDBusConnection *bus, const char *method, const char *unit);

/*
 * Makes and starts a unit without a file, which ends with a boot, without waiting. If systemd
 * refuses, that is logged. @properties: a(sv), a floating one is taken.
 */
void unit_start_transient(GDBusConnection *bus, const char *unit, GVariant *properties);

/* The names of active units that match @pattern, as "vgpu-*.timer". */
void units_list(GDBusConnection *bus, const char *pattern, GCancellable *cancellable,
                GAsyncReadyCallback func, void *data);

/* NULL with @error: systemd did not answer. */
GStrv units_list_finish(GDBusConnection *bus, GAsyncResult *answer, GError **error);

/* @text as a part of a unit's name, as systemd-escape(1) makes it. To be freed. */
char *unit_name_escape(const char *text);

/*
 * Calendar expressions of systemd's (systemd.time(7)): whether one is valid, and when it elapses
 * next. The answers are those of "systemd-analyze calendar", so they agree with systemd's timers.
 */

/**
 * CalendarTime - the answer about an expression
 * @normalized: the expression as systemd writes it; the same for all that mean the same
 * @next: when it elapses next, seconds since 1970; 0: never again
 */
typedef struct {
    char *normalized;
    gint64 next;
} CalendarTime;

/*
 * @times: of CalendarTime, one for each expression, in their order; NULL with @error of G_IO_ERROR:
 * INVALID_ARGUMENT: systemd does not accept one of them; CANCELLED: it was cancelled before @func
 * was called; else it could not be asked.
 */
typedef void (*CalendarFunc)(const GPtrArray *times, const GError *error, void *data);

/*
 * @func is called once, later. @expressions: NULL terminated, at least one.
 * @after: the time from which "next" counts, seconds since 1970; 0: now
 */
void calendar_ask(const char *const *expressions, gint64 after, GCancellable *cancellable,
                  CalendarFunc func, void *data);

/* The same from now on, but waits for the answer. To be unreferenced. */
GPtrArray *calendar_ask_now(const char *const *expressions, GError **error);

#endif
