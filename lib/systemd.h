/* SPDX-License-Identifier: MIT */
/* The unit of a vGPU's engine, in systemd and the kernel's cgroups. */
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

#endif
