/* SPDX-License-Identifier: MIT */
/*
 * Rendering contexts. Each Venus context is a process of its own ("worker"), forked by
 * virglrenderer's render server. One that has died is "lost": its commands fail, other contexts
 * don't notice, and the guest gets rid of it with CTX_DESTROY. One that names no capset, where
 * OpenGL is not offered, has no renderer: resources come and go in it, commands fail.
 */
#ifndef ENGINE_CONTEXT_H
#define ENGINE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct request;

/* Whether the context exists, has a renderer, and is not lost. */
bool context_alive(struct engine *engine, uint32_t ctx_id);

/*
 * 0; -ENOENT: no such context, or one without a renderer, or it is lost (it may become so here);
 * another error of virglrenderer: no such ring.
 */
int context_create_fence(struct engine *engine, uint32_t ctx_id, uint32_t ring_idx,
                         uint64_t fence_id);

/*
 * Nobody tells when a worker dies, and virglrenderer's thread for its fences then spins on the
 * closed socket. Nor when one sleeps for want of a wake-up, see venus_rings.h. To be called every
 * few seconds: finds the dead ones out, and wakes the others.
 */
void context_probe_all(struct engine *engine);

void context_lost(struct engine *engine, uint32_t ctx_id);

/* Destroys all, one after the other: a guest may have many, and each has a process to end. */
void context_destroy_all(struct engine *engine);

/* Handlers, see control.h. */
uint32_t context_cmd_create(struct engine *engine, const struct request *request);
uint32_t context_cmd_destroy(struct engine *engine, const struct request *request);
uint32_t context_cmd_attach(struct engine *engine, const struct request *request);
uint32_t context_cmd_detach(struct engine *engine, const struct request *request);
uint32_t context_cmd_submit(struct engine *engine, const struct request *request);

#endif /* ENGINE_CONTEXT_H */
