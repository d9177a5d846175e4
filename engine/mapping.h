/* SPDX-License-Identifier: MIT */
/*
 * The host's memory of a blob, mapped into this process by virglrenderer: for the window, for the
 * picture, or for both. virglrenderer maps a resource once.
 *
 * Memory that a worker exports as an opaque descriptor can be mapped by Vulkan only. virglrenderer
 * then makes an instance and a device in this process. A worker that is owned could request that
 * on any GPU, so it is refused unless the driver exports nothing else.
 */
#ifndef ENGINE_MAPPING_H
#define ENGINE_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct resource;

/* Fills in resource->map_addr and map_size. False: it cannot be mapped. */
bool mapping_get(struct resource *resource);

/* Once for each mapping_get() that returned true. */
void mapping_put(struct resource *resource);

/*
 * Plain shared memory that the context with this serial has made, as Mesa makes its rings. NULL: it
 * has not, or the resource is of another kind. What is written to a ring must not reach another
 * program's memory, so it is not enough that the guest's kernel has attached it to the context.
 *
 * While the guest has it in its window, as it has its rings, this makes no system call.
 */
void *mapping_get_shm(struct engine *engine, uint64_t maker, uint32_t resource_id, uint64_t *size);
void mapping_put_shm(struct engine *engine, uint32_t resource_id);

#endif /* ENGINE_MAPPING_H */
