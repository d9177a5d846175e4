/* SPDX-License-Identifier: MIT */
/*
 * vgpu-guard@UUID.service of containers' slices: started with a user of its own, which
 * vgpu-engine-user writes first, and stopped. One step after the other, so that a guard that goes
 * and one that comes with its UUID are not mixed up.
 */
#ifndef VGPUD_GUARD_UNITS_H
#define VGPUD_GUARD_UNITS_H

#include <gio/gio.h>

typedef struct GuardUnits GuardUnits;

/* @root: in place of /, as everywhere. @bus: a reference is taken. */
GuardUnits *guard_units_new(const char *root, GDBusConnection *bus);

/* What is not done yet is left undone. */
void guard_units_free(GuardUnits *units);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GuardUnits, guard_units_free)

/* Neither waits; what fails is in the log. */
void guard_units_start(GuardUnits *units, const char *uuid);
void guard_units_stop(GuardUnits *units, const char *uuid);

#endif
