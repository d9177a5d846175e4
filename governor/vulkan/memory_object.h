/* SPDX-License-Identifier: MIT */
/*
 * Memory that has been exported or imported, identified by its file descriptor's inode. The same
 * object is charged once in a slice, however many of its processes have it and how often, as long
 * as any VkDeviceMemory of it is left. It is counted here once per process; the arbiter counts
 * processes.
 *
 * Only descriptors with an inode of the object's own identify it: DMA buffers and memory files.
 * Those of a device file (some drivers' opaque descriptors) all look the same and are charged each.
 * Thread-safe.
 */
#ifndef GOVERNOR_VULKAN_MEMORY_OBJECT_H
#define GOVERNOR_VULKAN_MEMORY_OBJECT_H

#include "charge.h"

struct memory_object;

/*
 * The object behind @fd in @slice, with an additional reference. NULL: it cannot be identified, or
 * there is no memory. A new one has no charge.
 */
struct memory_object *memory_object_get(int fd, struct layer_slice *slice);

/* Drops a reference; the last one returns its charge. NULL is allowed. */
void memory_object_put(struct memory_object *object);

/*
 * Takes over @charge, which becomes empty: an allocation has been exported. If the object has been
 * charged already, the caller keeps @charge.
 */
void memory_object_export(struct memory_object *object, struct charge *charge);

/* Charges an imported object, if it is not charged yet. False: beyond the limit. */
bool memory_object_import(struct memory_object *object, uint64_t bytes, uint32_t heap);

#endif /* GOVERNOR_VULKAN_MEMORY_OBJECT_H */
