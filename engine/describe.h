/* SPDX-License-Identifier: MIT */
/* The abilities of a GPU in an engine, for the host agent. */
#ifndef ENGINE_DESCRIBE_H
#define ENGINE_DESCRIBE_H

#include "icd.h"
#include "options.h"

/*
 * Prints a keyfile to standard output: group "vulkan", keys device, driver, api, exports-memory,
 * compute-queues, graphics-queues, features; of a GPU that has CUDA and no Vulkan (cuda_alone.h)
 * the key missing, with the reason. False with @error set if the GPU cannot be used.
 */
bool describe_gpu(const struct options *options, GError **error);

/* The keyfile's text. */
char *describe_report(const char *manifest, const struct icd_report *report);
char *describe_missing(const char *why);

#endif /* ENGINE_DESCRIBE_H */
