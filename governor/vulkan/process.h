/* SPDX-License-Identifier: MIT */
/*
 * The slices that this process is a member of, shared by its instances.
 *
 *   VGPU_GOVERNOR_SLICES     a directory with GPU/SLICE/governor.sock for each GPU
 *   VGPU_GOVERNOR_SOCKET     otherwise: one slice's socket, for any GPU;
 *                            GOVERNOR_DEFAULT_SOCKET if it is not set
 *   /run/vgpu/slices         such a directory, without any of these: a container's mounts;
 *                            membership is required
 *   VGPU_GOVERNOR_REQUIRED   1: without membership there is no instance, and no device of a GPU
 *                            without a slice
 */
#ifndef GOVERNOR_VULKAN_PROCESS_H
#define GOVERNOR_VULKAN_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <vulkan/vulkan.h>

#include "member.h"

/**
 * struct layer_slice - a membership, and what this process holds by it
 * @gpu: PCI address, or soft:NAME; "": none of these; NULL: any GPU
 * @heap_usage, @spilled: bytes charged, by heap, and of all heaps in host memory
 * @next_look_ns: when its driver may be asked again (driver_memory.h)
 */
struct layer_slice {
    struct layer_slice *next;
    char *gpu;
    GovernorMember *member;
    _Atomic uint64_t heap_usage[VK_MAX_MEMORY_HEAPS];
    _Atomic uint64_t spilled;
    _Atomic uint64_t next_look_ns;
};

/*
 * All of them, joined on the first call: one with gpu NULL, or one for each GPU and at last one
 * with gpu "", whose member has no slice. NULL if membership is required and fails; standard error
 * says so.
 */
struct layer_slice *process_slices_get(void);

/* To be called for each successful get; the last one leaves the slices. */
void process_slices_put(void);

bool process_slices_are_required(void);

#endif /* GOVERNOR_VULKAN_PROCESS_H */
