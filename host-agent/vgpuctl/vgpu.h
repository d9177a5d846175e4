/* SPDX-License-Identifier: MIT */
/*
 * vGPUs as they are listed, and the options that describe one and its place, for all commands that
 * create or change one. The tables of options are in command.h.
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

#endif
