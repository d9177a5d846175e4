/* SPDX-License-Identifier: MIT */
/*
 * Limits of GPUs that the kernel or a GPU's driver holds for a cgroup, and for which systemd has no
 * properties: dmem.max (Linux 6.14), NVIDIA's own of driver 615, and drm.weight, which was proposed
 * for Linux and is not in it. They also bind a program that goes round its slice's door.
 *
 * vgpu-device-limits@UUID.service sets them, because cgroups are read-only in vgpud's sandbox. It
 * finds the cgroup of a slice that is no vGPU in /run/vgpu/limits/UUID, which this writes. Nothing
 * has to be taken back: a limit goes with its cgroup.
 */
#ifndef VGPUD_SYNC_DEVICE_LIMITS_H
#define VGPUD_SYNC_DEVICE_LIMITS_H

#include "host-agent/model/slice.h"
#include "lib/gpu.h"
#include "lib/host_root.h"

typedef struct DeviceLimits DeviceLimits;

DeviceLimits *device_limits_new(HostRoot *root);
void device_limits_free(DeviceLimits *limits);

/*
 * Whether the service is to be started: something could hold @slice's limits for @cgroup, a
 * directory, and does not, as far as known. A directory that was made anew is another cgroup. FALSE
 * as well if there is no such directory.
 */
gboolean device_limits_update(DeviceLimits *limits, const Slice *slice, const Gpu *gpu,
                              const char *cgroup);

/* The slice has no programs in a cgroup of their own now, or the service could not be started. */
void device_limits_forget(DeviceLimits *limits, const char *uuid);

#endif
