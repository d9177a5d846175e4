/* SPDX-License-Identifier: MIT */
/*
 * virglrenderer: one per process, its state is global. Venus contexts run in worker processes that
 * its render server forks. OpenGL ("virgl") and DRM native contexts run in this very process, so a
 * hole in their decoders is a hole in the engine; that is why OpenGL must be asked for.
 */
#ifndef ENGINE_RENDERER_H
#define ENGINE_RENDERER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;

/*
 * Starts virglrenderer with as much of @capsets (enum capset_bits) as there is, at least one, and
 * fills in engine->capsets. @render_node: path for what needs one in this process, or NULL.
 * The environment must be set up before: workers inherit it.
 */
bool renderer_start(struct engine *engine, uint32_t capsets, const char *render_node,
                    GError **error);

/* Destroys all contexts and resources. False: the renderer is gone. */
bool renderer_reset(struct engine *engine);

void renderer_stop(void);

#endif /* ENGINE_RENDERER_H */
