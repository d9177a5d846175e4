/* SPDX-License-Identifier: MIT */
/*
 * Where vgpud is on the bus.
 */
#ifndef VGPU_BUS_NAMES_H
#define VGPU_BUS_NAMES_H

#define VGPU_BUS_NAME     "org.mdev_vgpu.Host1"
#define VGPU_ROOT_PATH    "/org/mdev_vgpu"
#define VGPU_MANAGER_PATH VGPU_ROOT_PATH "/manager"
#define VGPU_GPU_PATH     VGPU_ROOT_PATH "/gpu"

#endif
