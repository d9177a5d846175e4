/* SPDX-License-Identifier: MIT */
/*
 * The host-visible window: memory of the host's Vulkan driver that the guest sees through a BAR.
 * virglrenderer maps it into this process, and the driver shows our mapping to the guest.
 */
#ifndef ENGINE_WINDOW_H
#define ENGINE_WINDOW_H

#include <stdint.h>

struct engine;
struct request;
struct resource;

/*
 * First out of the window, then out of this process: otherwise the guest would briefly see whatever
 * is mapped at that address next. Does nothing for a resource that is not mapped.
 */
void window_unmap(struct engine *engine, struct resource *resource);

/* Handlers, see control.h. */
uint32_t window_cmd_map(struct engine *engine, const struct request *request);
uint32_t window_cmd_unmap(struct engine *engine, const struct request *request);

#endif /* ENGINE_WINDOW_H */
