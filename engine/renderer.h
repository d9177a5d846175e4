/* SPDX-License-Identifier: MIT */
/*
 * virglrenderer: one per process, because its state is global. Venus contexts run in worker
 * processes that its render server forks. OpenGL ("virgl") and DRM native contexts run in this very
 * process, so a hole in their decoders is a hole in the engine; therefore OpenGL is off by default.
 */
#ifndef ENGINE_RENDERER_H
#define ENGINE_RENDERER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Called for fences that are done, each with the cookie, on threads of virglrenderer's own. */
struct renderer_events {
    void (*ring_fence)(void *cookie, uint32_t ctx_id, uint32_t ring_idx, uint64_t id);
    void (*global_fence)(void *cookie, uint32_t id);
};

/*
 * Starts virglrenderer with the available part of @capsets (enum capset_bits), and returns that
 * part; 0 with @error set if it does not start. @events must outlive the renderer. @render_node:
 * path for a renderer that needs one in this process, or NULL. The environment must be set up
 * before: workers inherit it.
 */
uint32_t renderer_start(const struct renderer_events *events, void *cookie, uint32_t capsets,
                        const char *render_node, GError **error);

/* Destroys all contexts and resources. False: the renderer has ended. */
bool renderer_reset(void);

void renderer_stop(void);

#endif /* ENGINE_RENDERER_H */
