/* SPDX-License-Identifier: MIT */
/*
 * Methods by the names that they had before a vGPU was a slice with a door. They go with the
 * release after the next one, and so do these files, test-old-names.c, the methods that are marked
 * as deprecated in org.mdev_vgpu.Host1.xml, and call_translate().
 */
#ifndef VGPUD_METHODS_OLD_NAMES_H
#define VGPUD_METHODS_OLD_NAMES_H

#include "host-agent/daemon/host/call.h"

/**
 * OldName
 * @signal: of the manager's interface, when the old method is called
 * @method: the new one
 * @asks: its parameters, as text; NULL: see @parameters
 * @parameters: those that it takes for the old one's, floating; NULL: the same
 * @form: as of call_translate()
 */
typedef struct {
    const char *signal;
    const char *method;
    const char *asks;
    GVariant *(*parameters)(GVariant *old);
    CallForm *form;
} OldName;

/* Up to one without a signal. */
extern const OldName old_names[];

/* @invocation, a call by that name, is from now on one of the new method. */
void old_name_translate(const OldName *old, GDBusMethodInvocation *invocation);

#endif
