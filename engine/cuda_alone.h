/* SPDX-License-Identifier: MIT */
/*
 * A GPU that has CUDA and can't have Vulkan, however long one waits: NVIDIA's driver without
 * nvidia-drm, which makes its render node, or without its Vulkan driver.
 */
#ifndef ENGINE_CUDA_ALONE_H
#define ENGINE_CUDA_ALONE_H

#include "gpu.h"
#include "options.h"

#include <glib.h>

/* Why it is so, to be freed. NULL: it is not. */
char *cuda_alone_why(const char *gpu, const struct options *options);

/* Waits for the GPU's nodes, and closes the sandbox around them, unless the options say otherwise.
 * NULL with @error set: the nodes do not come, or it can't be closed. */
struct gpu *cuda_alone_enter(const char *gpu, const struct options *options, GError **error);

#endif /* ENGINE_CUDA_ALONE_H */
