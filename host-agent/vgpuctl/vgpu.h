/* SPDX-License-Identifier: MIT */
/*
 * vGPUs as they are listed, the options that describe one and its place, for all commands that
 * create or change one, and how options become a dictionary for vgpud. The tables of options are
 * in command.h.
 */
#ifndef VGPUCTL_VGPU_H
#define VGPUCTL_VGPU_H

#include <glib.h>

#include "host-agent/vgpuctl/listing.h"

extern const Listing vgpu_listing;

/* Of a vGPU that may also be a slice: "yes", "no", "yes, without Vulkan". */
char *vgpu_cuda_text(GVariant *vgpu, const char *key);

/*
 * The options that describe a vGPU and its place, for all commands that create or change one.
 * Their values are here; the tables of options are in command.h.
 */

/* What CreateSlice takes besides Type. */
gboolean vgpu_options_for_slice(GVariantDict *dict, GError **error);

/* All for one vGPU of a VM: these, Type by --type, and one entry in Uuids, made up if --uuid is not
 * given. */
gboolean vgpu_options_for_domain(GVariantDict *dict, GError **error);

/* Where libvirt is: --connect, LIBVIRT_DEFAULT_URI, or the system's QEMU. */
const char *vgpu_options_uri(void);

gboolean vgpu_options_dry_run(void);

/* Of "domain prepare": the vGPUs that the domain requests so far are dropped. */
gboolean vgpu_options_replace(void);

/* Says of each GPU of @slices, dictionaries with "Gpu", that its arbiter hangs, if root asks. */
void warn_of_arbiters(const Options *options, GVariant *slices);

/* Nobody counts what these use: says so, once. @list: of ListVgpus or ListSlices. */
void warn_of_meter(GVariant *list);

/* The options of a command as a dictionary for vgpud. Options that are not given are not in it. */

/* @value: NULL: not given. */
void call_dict_add_text(GVariantDict *dict, const char *key, const char *value);

/* @list: NULL: not given. */
void call_dict_add_list(GVariantDict *dict, const char *key, char **list);

/* @value: below 0: not given. */
void call_dict_add_number(GVariantDict *dict, const char *key, int value);

/* Nothing if it is FALSE. */
void call_dict_add_flag(GVariantDict *dict, const char *key, gboolean value);

/* A size, or a part of the GPU's memory, as 30%. NULL: nothing is added. */
gboolean call_dict_add_vram(GVariantDict *dict, const char *text, GError **error);

/* A size as "512M"; NULL: not given; "0" if @zero allows it. VGPUCTL_USAGE names @option. */
gboolean call_dict_add_size(GVariantDict *dict, const char *key, const char *option,
                            const char *text, gboolean zero, GError **error);

#endif
