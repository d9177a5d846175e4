/* SPDX-License-Identifier: MIT */
/*
 * Memory that has been exported or imported, by what its file descriptors stand for: the same
 * object is charged once in a slice, however many of its processes have it and how often, as long
 * as any VkDeviceMemory of it is left. Here it is counted once per process; the arbiter counts
 * processes.
 *
 * Only descriptors whose inode is the object's own tell objects apart: DMA buffers and memory
 * files. Those of a device file (some drivers' opaque descriptors) all look the same and are
 * charged each. Thread-safe.
 */
#ifndef GOVERNOR_VULKAN_MEMORY_OBJECT_H
#define GOVERNOR_VULKAN_MEMORY_OBJECT_H

#include "memory.h"

struct memory_object;

/*
 * The object behind @fd, as @slice has it, with a reference more. NULL: it can't be told, or there is no memory. A
 * new one has no charge.
 */
struct memory_object *memory_object_get(int fd, struct layer_slice *slice);

/* One reference less; with the last, its charge is given back. NULL is allowed. */
void memory_object_put(struct memory_object *object);

/*
 * Takes over @charge, which becomes empty: what was allocated has been exported. Where the object
 * has been charged already @charge is left to the caller.
 */
void memory_object_export(struct memory_object *object, struct charge *charge);

/* Charges an object that is imported, where it isn't. False: beyond the limit. */
bool memory_object_import(struct memory_object *object, uint64_t bytes, uint32_t heap);

#endif /* GOVERNOR_VULKAN_MEMORY_OBJECT_H */
