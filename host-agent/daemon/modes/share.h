/* SPDX-License-Identifier: MIT */
/*
 * A shared GPU at the vGPU driver, and its vGPUs at mdevctl. These calls block.
 */
#ifndef VGPUD_MODES_SHARE_H
#define VGPUD_MODES_SHARE_H

#include <glib.h>

/* Whether the kernel module is loaded; without it GPUs are shared with containers only. */
gboolean share_has_driver(const char *root);

/*
 * Registers the GPU as the registrar would, by gpus.conf and types.d. One that is there already is
 * no error. Without the driver the GPU is shared with containers only.
 */
gboolean share_register(const char *root, const char *address, GError **error);

/* One that is not there is no error. */
gboolean share_unregister(const char *root, const char *address, GError **error);

/* Lets it run empty, or ends that. One that is not registered is no error: nothing can be made on
 * it. */
gboolean share_drain(const char *root, const char *address, gboolean on, GError **error);

/* Takes a vGPU away that no VM has; its definition stays. */
gboolean share_stop_vgpu(const char *root, const char *uuid, GError **error);

/* Starts a defined vGPU. One that is there already is no error. */
gboolean share_start_vgpu(const char *root, const char *uuid, GError **error);

#endif
