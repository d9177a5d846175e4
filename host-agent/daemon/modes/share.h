/* SPDX-License-Identifier: MIT */
/* A shared GPU in the vGPU driver, and its vGPUs in mdevctl. These calls block. */
#ifndef VGPUD_MODES_SHARE_H
#define VGPUD_MODES_SHARE_H

#include <glib.h>

#include "lib/host_root.h"

/* Whether the kernel module is loaded; without it GPUs are shared with containers only. */
gboolean share_has_driver(HostRoot *root);

/*
 * Registers the GPU as the registrar would, from gpus.conf and types.d. If it is registered
 * already, that is no error. Without the driver the GPU is shared with containers only.
 */
gboolean share_register(HostRoot *root, const char *address, GError **error);

/* If it is not registered, that is no error. */
gboolean share_unregister(HostRoot *root, const char *address, GError **error);

/* Drains it, or ends that. If it is not registered, that is no error: nothing can be made on it. */
gboolean share_drain(HostRoot *root, const char *address, gboolean on, GError **error);

/* Removes a vGPU that no VM uses; its definition stays. */
gboolean share_stop_vgpu(HostRoot *root, const char *uuid, GError **error);

/* Starts a defined vGPU. If it is started already, that is no error. */
gboolean share_start_vgpu(HostRoot *root, const char *uuid, GError **error);

#endif
