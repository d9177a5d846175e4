/* SPDX-License-Identifier: MIT */
/*
 * Puts the CUDA door where a container's programs look for NVIDIA's libraries.
 * governor/cuda/DESIGN.md says how.
 */
#ifndef CONTAINER_HOOKS_CUDA_DOOR_H
#define CONTAINER_HOOKS_CUDA_DOOR_H

#include "container-hooks/bundle.h"

/*
 * In the container's mount namespace, before its root is changed. @folder: where the container has
 * the door and the driver, as "/usr/lib/mdev-vgpu". May be called again for the same container.
 */
gboolean cuda_door_put(const Bundle *bundle, const char *folder, GError **error);

/*
 * The same for a container without a node, whose libraries are in FOLDER/guest. It has no driver,
 * and no NVML if its CDI file is of a version before that.
 */
gboolean cuda_remote_put(const Bundle *bundle, const char *folder, GError **error);

#endif
