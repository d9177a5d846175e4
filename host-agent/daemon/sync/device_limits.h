/* SPDX-License-Identifier: MIT */
/*
 * Limits of GPUs that the kernel or a GPU's driver holds for a cgroup, and for which systemd has no
 * properties: dmem.max (Linux 6.14), NVIDIA's own of driver 615, and drm.weight, which was proposed
 * for Linux and is not in it. They also bind a program that goes round its slice's door.
 *
 * vgpu-device-limits@UUID.service sets them, because cgroups are read-only in vgpud's sandbox. It
 * finds the cgroup of a slice that is no vGPU in /run/vgpu/limits/UUID. Nothing has to be taken
 * back: a limit goes with its cgroup.
 */
#ifndef VGPUD_SYNC_DEVICE_LIMITS_H
#define VGPUD_SYNC_DEVICE_LIMITS_H

#include "host-agent/daemon/sync/outputs.h"
#include "host-agent/model/slice.h"
#include "lib/gpu.h"

/*
 * The service is wanted if something could hold @slice's limits for @cgroup, a directory, and does
 * not, as far as known. A directory that was made anew is another cgroup. @told: it was started for
 * the slice already, so NVIDIA's driver, whose own books cannot be read here, was told.
 */
void device_limits_want(Wants *wants, HostRoot *root, const Slice *slice, const Gpu *gpu,
                        const char *cgroup, gboolean told);

#endif
