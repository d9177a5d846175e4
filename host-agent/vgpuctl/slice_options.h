/* SPDX-License-Identifier: MIT */
/*
 * Options of commands that create or change slices. Those of a slice's attributes are made from the
 * table of attributes (slice_keys.h); vgpud gets them as a dictionary, with what was given.
 */
#ifndef VGPUCTL_SLICE_OPTIONS_H
#define VGPUCTL_SLICE_OPTIONS_H

#include <glib.h>

#include "host-agent/model/slice_keys.h"

/* The options of the rows that have one of @uses, up to G_OPTION_ENTRY_NULL; kept. */
const GOptionEntry *slice_options(guint uses);

/* What was given of all of them. VGPUCTL_USAGE names the option. */
gboolean slice_options_add(GVariantDict *dict, GError **error);

/* All that SetSlice takes. */
gboolean slice_options_for_change(GVariantDict *dict, GError **error);

/* All of a request for CreateSlices besides Type. @door: where --door is not given; NULL: none. */
gboolean slice_options_for_creation(GVariantDict *dict, const char *door, GError **error);

/*
 * All for one vGPU of a VM: the same with Type by --type, and one entry in Uuids, made up if --uuid
 * is not given.
 */
gboolean slice_options_for_domain(GVariantDict *dict, GError **error);

/* Where libvirt is: --connect, LIBVIRT_DEFAULT_URI, or the system's QEMU. */
const char *slice_options_uri(void);

gboolean slice_options_dry_run(void);

/* Of "domain prepare": the vGPUs that the domain requests so far are dropped. */
gboolean slice_options_replace(void);

/*
 * Other members of such a dictionary. What is not given is not in it: @value is NULL, below 0, or
 * FALSE.
 */

void call_dict_add_text(GVariantDict *dict, const char *key, const char *value);
void call_dict_add_list(GVariantDict *dict, const char *key, char **list);
void call_dict_add_number(GVariantDict *dict, const char *key, int value);
void call_dict_add_flag(GVariantDict *dict, const char *key, gboolean value);

/* A size as "512M"; "0" if @zero allows it. VGPUCTL_USAGE names @option. */
gboolean call_dict_add_size(GVariantDict *dict, const char *key, const char *option,
                            const char *text, gboolean zero, GError **error);

#endif
