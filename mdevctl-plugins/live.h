/* SPDX-License-Identifier: MIT */
/* "mdevctl modify --live": changes a running vGPU, which may be in use, at once. */
#ifndef MDEVCTL_PLUGINS_LIVE_H
#define MDEVCTL_PLUGINS_LIVE_H

#include "mdevctl-plugins/attributes.h"
#include "mdevctl-plugins/call.h"

/*
 * Writes the values of @wanted that the vGPU does not have yet, all or none, after asking vgpud.
 * Other values stay as they are. FALSE with a message. vgpud learns of it from the driver.
 */
gboolean live_modify(const Call *call, const Wanted *wanted, GError **error);

#endif
