/* SPDX-License-Identifier: MIT */
/*
 * The unit of a vGPU's engine, as systemd and the kernel's cgroups have it.
 */
#ifndef LIB_SYSTEMD_H
#define LIB_SYSTEMD_H

#include <gio/gio.h>
#include <glib.h>

/* "vgpu-engine@UUID.service". To be freed. */
char *engine_unit_name(const char *uuid);

/* Its cgroup's directory below @root. To be freed. */
char *engine_unit_cgroup(const char *root, const char *uuid);

/* CPU time that its processes have used, microseconds; 0: none, or it is not running. */
guint64 engine_unit_cpu_us(const char *root, const char *uuid);

/* Their process ids; empty where it is not running. */
GStrv engine_unit_processes(const char *root, const char *uuid);

/*
 * systemd's units, started and stopped without waiting for it.
 */
/* @method: StartUnit, StopUnit. Where systemd says no the log has it. */
void unit_call(GDBusConnection *bus, const char *method, const char *unit);

#endif
