/* SPDX-License-Identifier: MIT */
/*
 * The users of a GPU, and those that prevent another mode of it. Sentences, for people. May read
 * all of /proc.
 */
#ifndef VGPUD_MODES_USERS_H
#define VGPUD_MODES_USERS_H

#include "lib/gpu.h"
#include "lib/host_root.h"

/* Every VM, vGPU and process that uses @gpu now. To be freed. */
GStrv users_list(HostRoot *root, const Gpu *gpu);

/*
 * The users that prevent the mode @target: it is never taken from them. vGPUs that no VM uses, and
 * that mdevctl has defined, are stopped instead. To be freed.
 */
GStrv users_in_the_way(HostRoot *root, const Gpu *gpu, GpuMode target);

/* UUIDs of its vGPUs. To be freed. */
GStrv users_vgpus(HostRoot *root, const Gpu *gpu);

/* Whether an engine of a vGPU has one of its nodes open. */
gboolean users_has_engines(HostRoot *root, const Gpu *gpu);

#endif
