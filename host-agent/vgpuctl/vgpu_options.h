/* SPDX-License-Identifier: MIT */
/*
 * The options that describe a vGPU and its place, for all commands that create or change one.
 * Their values are here; the tables of options are in command.h.
 */
#ifndef VGPUCTL_VGPU_OPTIONS_H
#define VGPUCTL_VGPU_OPTIONS_H

#include <glib.h>

/* What SetVgpu takes, into @dict. VGPUCTL_USAGE names the option. */
gboolean vgpu_options_parameters(GVariantDict *dict, GError **error);

/* What CreateVgpus takes besides these and Type. */
gboolean vgpu_options_placement(GVariantDict *dict, GError **error);

/* What CreateSlice takes besides Type. */
gboolean vgpu_options_for_slice(GVariantDict *dict, GError **error);

/* All for one vGPU of a VM: these, Type by --type, and one entry in Uuids, made up if --uuid is not
 * given. */
gboolean vgpu_options_for_domain(GVariantDict *dict, GError **error);

/* Where libvirt is: --connect, LIBVIRT_DEFAULT_URI, or the system's QEMU. */
const char *vgpu_options_uri(void);

gboolean vgpu_options_dry_run(void);

#endif
