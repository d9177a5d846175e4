/* SPDX-License-Identifier: MIT */
/*
 * The host-visible window: memory of the host's Vulkan driver that the guest sees through a BAR.
 * virglrenderer maps it into this process, the driver shows our mapping to the guest.
 */
#ifndef ENGINE_WINDOW_H
#define ENGINE_WINDOW_H

#include <stdint.h>

struct engine;
struct request;
struct resource;

/*
 * Out of the window first, then out of this process: in between the guest would see whatever comes
 * to that address next. Does nothing for a resource that isn't mapped.
 */
void window_unmap(struct engine *engine, struct resource *resource);

/* Handlers, see control.h. */
uint32_t window_cmd_map(struct engine *engine, const struct request *request);
uint32_t window_cmd_unmap(struct engine *engine, const struct request *request);

#endif /* ENGINE_WINDOW_H */
