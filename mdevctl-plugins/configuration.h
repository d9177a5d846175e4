/* SPDX-License-Identifier: MIT */
/*
 * A device's configuration as mdevctl gives it to callouts, and lists of attributes as it takes
 * them.
 */
#ifndef CALLOUT_CONFIGURATION_H
#define CALLOUT_CONFIGURATION_H

#include "lib/vgpu.h"
#include "mdevctl-plugins/attributes.h"

/* FALSE, with a sentence, where @text is no configuration, or one that no vGPU can have. @wanted:
 * to be cleared in any case. */
gboolean configuration_parse(const char *text, Wanted *wanted, GError **error);

/* All parameters of a vGPU that there is, as a list of JSON, less those of which nothing was said;
 * a definition that has it can be started. To be freed. */
char *configuration_list(const Vgpu *vgpu);

/* What the vGPU has of an attribute now; "": nothing was said. To be freed. */
char *configuration_value(const Vgpu *vgpu, guint attribute);

#endif
