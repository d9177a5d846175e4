/* SPDX-License-Identifier: MIT */
/* What device_limits.h wants for a slice, without an agent. */
#ifndef TESTS_UNIT_DEVICE_LIMITS_KIT_H
#define TESTS_UNIT_DEVICE_LIMITS_KIT_H

#include "host-agent/model/slice.h"
#include "lib/gpu.h"
#include "lib/host_root.h"

typedef struct DeviceWorld DeviceWorld;

/* All live longer. */
DeviceWorld *device_world_new(HostRoot *root, const Slice *slice, const Gpu *gpu);
void device_world_free(DeviceWorld *world);

/* @cgroup: of the slice's programs; NULL: it has none. TRUE: the service was started. */
gboolean device_world_update(DeviceWorld *world, const char *cgroup);

#endif
