/* SPDX-License-Identifier: MIT */
/*
 * A device's configuration as mdevctl passes it to callouts, and lists of attributes in the form
 * that it accepts.
 */
#ifndef MDEVCTL_PLUGINS_CONFIGURATION_H
#define MDEVCTL_PLUGINS_CONFIGURATION_H

#include "lib/vgpu.h"
#include "mdevctl-plugins/attributes.h"

/*
 * FALSE, with a message, if @text is not a configuration, or not one that a vGPU can have. @wanted:
 * to be cleared in any case.
 */
gboolean configuration_parse(const char *text, Wanted *wanted, GError **error);

/*
 * All parameters of an existing vGPU, as a list in JSON, except those that were never set. A
 * definition with this list can be started. To be freed.
 */
char *configuration_list(HostRoot *root, const Vgpu *vgpu);

/* The current value of the vGPU's attribute; "": never set, or an older driver. To be freed. */
char *configuration_value(HostRoot *root, const Vgpu *vgpu, const Attribute *attribute);

#endif
