/* SPDX-License-Identifier: MIT */
/*
 * /run/vgpu/owners/OWNER/GPU/NUMBER: the native slices of an engine's job, for a program outside of
 * containers: the governor's layer takes the directory as a whole, a program's slice for each GPU.
 * Each is a link to the slice's own directory, which is what only its users can enter.
 */
#ifndef VGPUD_CONTAINERS_OWNER_DIRS_H
#define VGPUD_CONTAINERS_OWNER_DIRS_H

#include <glib.h>
#include <sys/types.h>

#include "lib/host_root.h"

/* The directory of @owner, for VGPU_GOVERNOR_SLICES. To be freed. */
char *owner_dirs_path(HostRoot *root, const char *owner);

/*
 * Links the slice @uuid of the GPU at @gpu, whose own directory exists, and lets @uids in. Names
 * are checked: slice_owner_valid(), gpu_name_valid().
 */
gboolean owner_dirs_link(HostRoot *root, const char *owner, const char *gpu, const char *uuid,
                         const uid_t *uids, guint count, GError **error);

/* Before the slice's own directory is removed. Nothing to remove is no error. */
void owner_dirs_unlink(HostRoot *root, const char *uuid);

#endif
