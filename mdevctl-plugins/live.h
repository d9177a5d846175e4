/* SPDX-License-Identifier: MIT */
/*
 * "mdevctl modify --live": a vGPU that is running, and may be in use, is changed at once.
 */
#ifndef CALLOUT_LIVE_H
#define CALLOUT_LIVE_H

#include "mdevctl-plugins/attributes.h"
#include "mdevctl-plugins/call.h"

/*
 * Writes what @wanted gives and the vGPU does not have yet, all or none, after vgpud was asked;
 * what it does not give stays as it is. FALSE with a sentence. vgpud hears of it from the driver.
 */
gboolean live_modify(const Call *call, const Wanted *wanted, GError **error);

#endif
