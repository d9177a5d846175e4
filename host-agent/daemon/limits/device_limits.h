/* SPDX-License-Identifier: MIT */
/*
 * Limits of GPUs that a kernel may hold by itself for the cgroup of an engine, and that systemd has
 * no properties for: dmem.max (Linux 6.14), and drm.weight, which was proposed for Linux and is not
 * in it. No kernel of Debian's has them; untested.
 *
 * They are written by vgpu-device-limits@UUID.service, for vgpud's sandbox has cgroups for reading
 * only.
 */
#ifndef LIMITS_DEVICE_LIMITS_H
#define LIMITS_DEVICE_LIMITS_H

#include "host-agent/model/slice.h"

/*
 * The kernel could hold the engine to what the slice has, and does not (any more): so it is with
 * each new engine, whose cgroup is new. FALSE as well where there is no engine.
 */
gboolean device_limits_differ(const char *root, const Slice *slice);

#endif
