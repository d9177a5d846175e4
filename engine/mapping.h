/* SPDX-License-Identifier: MIT */
/*
 * The host's memory of a blob, mapped into this process by virglrenderer: for the window, for the
 * picture, or for both. virglrenderer maps a resource once.
 */
#ifndef ENGINE_MAPPING_H
#define ENGINE_MAPPING_H

#include <stdbool.h>

struct resource;

/* Fills in resource->map_addr and map_size. False: it can't be mapped. */
bool mapping_get(struct resource *resource);

/* Once for each mapping_get() that was true. */
void mapping_put(struct resource *resource);

#endif /* ENGINE_MAPPING_H */
