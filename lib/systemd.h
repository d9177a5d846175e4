/* SPDX-License-Identifier: MIT */
/* systemd's units: those of engines, also in the kernel's cgroups, and calls to its manager. */
#ifndef LIB_SYSTEMD_H
#define LIB_SYSTEMD_H

#include <gio/gio.h>
#include <glib.h>

#include "lib/host_root.h"

/* "vgpu-engine@UUID.service". To be freed. */
char *engine_unit_name(const char *uuid);

/* Its cgroup's directory. To be freed. */
char *engine_unit_cgroup(const char *uuid);

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

#endif
