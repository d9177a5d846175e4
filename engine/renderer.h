/* SPDX-License-Identifier: MIT */
/*
 * virglrenderer: one per process, because its state is global. Its contexts are Venus' alone, which
 * run in worker processes that its render server forks. OpenGL ("virgl") and native contexts would
 * run in this very process, without the governor, and a hole in their decoders would be a hole in
 * it.
 */
#ifndef ENGINE_RENDERER_H
#define ENGINE_RENDERER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Called for a fence that is done, with the cookie, on a thread of virglrenderer's own. */
typedef void (*renderer_fence)(void *cookie, uint32_t ctx_id, uint32_t ring_idx, uint64_t id);

/*
 * Starts virglrenderer; false with @error set if it does not start. The environment must be set up
 * before: workers inherit it.
 */
bool renderer_start(renderer_fence on_fence, void *cookie, GError **error);

/* Destroys all contexts and resources. */
void renderer_stop(void);

#endif /* ENGINE_RENDERER_H */
