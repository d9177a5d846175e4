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

#define VGPU_MANAGER_INTERFACE "org.mdev_vgpu.Host1.Manager"

/*
 * In the environment of what vgpud runs: it has decided already, so mdevctl's callout does not ask it again. Who can
 * set this for mdevctl is root, and has "mdevctl --force" anyway.
 */
#define VGPU_CHECKED_ENV "VGPU_CHECKED"

#endif
