/* SPDX-License-Identifier: MIT */
/*
 * Device memory: charged to the slice before it is allocated, returned after it is freed.
 *
 * Memory in DEVICE_LOCAL heaps is charged, once for each physical device that has an instance of
 * it. Memory that is imported by a file descriptor is charged if its slice has not been charged for
 * the same object already (memory_object.h). Imported host memory is not the device's. Sparse
 * resources are charged by the memory that is bound to them. What a driver uses for itself
 * (pipelines, descriptor pools, query pools) is charged if the driver reports it (driver_memory.h).
 */
#ifndef GOVERNOR_VULKAN_MEMORY_H
#define GOVERNOR_VULKAN_MEMORY_H

#include "charge.h"

/* For handle_map_destroy(). */
void memory_forget(void *record, void *data);

LAYER_COMMAND(AllocateMemory);
LAYER_COMMAND(FreeMemory);
LAYER_COMMAND(GetMemoryFdKHR);
LAYER_COMMAND(GetPhysicalDeviceMemoryProperties);
LAYER_COMMAND(GetPhysicalDeviceMemoryProperties2);

#endif /* GOVERNOR_VULKAN_MEMORY_H */
