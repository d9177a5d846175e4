/* SPDX-License-Identifier: MIT */
/*
 * GPUs that are shared without the kernel module mdev_vgpu: with containers and jobs, but not with
 * VMs. The kernel does not record this, so a file for each of them in /run does until the next
 * boot.
 */
#ifndef LIB_CONTAINERS_ONLY_H
#define LIB_CONTAINERS_ONLY_H

#include <glib.h>

#include "lib/host_root.h"

/* Why a VM gets no vGPU, and what to do. */
#define CONTAINERS_ONLY_WHY                                                                        \
    "the kernel module mdev_vgpu is not loaded, so this host shares its GPUs with containers "     \
    "and jobs only"
#define CONTAINERS_ONLY_ADVICE "install the package mdev-vgpu, then \"modprobe mdev_vgpu\""

/* @gpu: its address. */
gboolean containers_only_is(HostRoot *root, const char *gpu);

/* Errors are GLib's, of files. */
gboolean containers_only_set(HostRoot *root, const char *gpu, GError **error);

/* A GPU that is not shared in this way is no error. */
void containers_only_clear(HostRoot *root, const char *gpu);

#endif
