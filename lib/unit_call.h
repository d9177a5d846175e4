/* SPDX-License-Identifier: MIT */
/*
 * systemd's units, started and stopped without waiting for it.
 */
#ifndef VGPUD_UNIT_CALL_H
#define VGPUD_UNIT_CALL_H

#include <gio/gio.h>

/* @method: StartUnit, StopUnit. Where systemd says no the log has it. */
void unit_call(GDBusConnection *bus, const char *method, const char *unit);

#endif
