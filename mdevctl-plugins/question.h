/* SPDX-License-Identifier: MIT */
/*
 * vgpud asked, over D-Bus, whether it has anything against what mdevctl is about to do.
 */
#ifndef CALLOUT_QUESTION_H
#define CALLOUT_QUESTION_H

#include "mdevctl-plugins/attributes.h"
#include "mdevctl-plugins/call.h"

/*
 * FALSE, with vgpud's sentence, only where it says no. Where it isn't there, or says nothing for
 * two seconds, TRUE, and a line on standard error: vGPUs come up without it, held by the driver's
 * own limits. vgpud is not started for this.
 * @action: define, modify, start or live.
 */
gboolean question_ask(const Call *call, const char *action, const Wanted *wanted, GError **error);

#endif
