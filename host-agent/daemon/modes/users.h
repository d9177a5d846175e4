/* SPDX-License-Identifier: MIT */
/*
 * Who has a GPU, and who is in the way of another mode of it. Sentences, for people. May read all
 * of /proc.
 */
#ifndef VGPUD_MODES_USERS_H
#define VGPUD_MODES_USERS_H

#include "lib/gpu.h"

/* Every VM, vGPU and process that has @gpu now. To be freed. */
GStrv users_list(const char *root, const Gpu *gpu);

/*
 * Those for whom it can't get the mode @target: it is never taken from them. vGPUs that no VM has,
 * and that mdevctl has defined, are not in the way: they are stopped. To be freed.
 */
GStrv users_in_the_way(const char *root, const Gpu *gpu, GpuMode target);

/* UUIDs of its vGPUs. To be freed. */
GStrv users_vgpus(const char *root, const Gpu *gpu);

/* Whether an engine of a vGPU has a node of it. */
gboolean users_has_engines(const char *root, const Gpu *gpu);

#endif
