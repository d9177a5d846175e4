/* SPDX-License-Identifier: MIT */
/*
 * Whether the GPU has room for what comes back to it. A driver whose restore meets a full card
 * leaves the process stuck for good, so its memory is looked at before each restore, by NVML.
 */
#ifndef GOVERNOR_CUDA_SUSPEND_ROOM_H
#define GOVERNOR_CUDA_SUSPEND_ROOM_H

#include <stdint.h>

/*
 * Waits until no other vgpu-suspend moves memory of the GPU with the PCI address @gpu: until this
 * program ends, its room is nobody else's. @library: the path of NVML. NULL, or what is wrong.
 */
const char *room_open(const char *library, const char *gpu);

/*
 * Looks for room for what processes @pids have of @bytes that is not on the GPU. NULL, or why there
 * is none; to be used at once. NULL as well if room_open() was not called, or if the GPU uses the
 * host's memory, from which what comes back is taken.
 */
const char *room_look(const int *pids, unsigned int count, uint64_t bytes);

#endif
