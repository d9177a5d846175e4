/* SPDX-License-Identifier: MIT */
/* Asks vgpud, over D-Bus, whether it refuses what mdevctl is about to do. */
#ifndef MDEVCTL_PLUGINS_QUESTION_H
#define MDEVCTL_PLUGINS_QUESTION_H

#include "mdevctl-plugins/attributes.h"
#include "mdevctl-plugins/call.h"

/*
 * FALSE, with vgpud's message, only if vgpud refuses. If it is not running, or does not answer for
 * two seconds, TRUE, and a line on standard error: vGPUs work without it, within the driver's own
 * limits. vgpud is not started for this. @action: define, modify, start or live.
 */
gboolean question_ask(const Call *call, const char *action, const Wanted *wanted, GError **error);

#endif
