/* SPDX-License-Identifier: MIT */
/*
 * A GPU on D-Bus.
 */
#ifndef VGPUD_HOST_GPU_OBJECT_H
#define VGPUD_HOST_GPU_OBJECT_H

#include "lib/gpu.h"
#include "vgpu-host.h"

/* "/org/mdev_vgpu/gpu/0000_01_00_0", "/org/mdev_vgpu/gpu/soft_NAME". To be freed. */
char *gpu_object_path(const char *address);

/* A new object with the GPU's interface, not exported yet. */
VgpuObjectSkeleton *gpu_object_new(const Gpu *gpu);

/* Sets the GPU's current properties; changes are signalled on the bus. */
void gpu_object_update(VgpuObjectSkeleton *object, const Gpu *gpu);

#endif
