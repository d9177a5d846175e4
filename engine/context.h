/* SPDX-License-Identifier: MIT */
/*
 * Contexts. Each Venus context is a process of its own ("worker"), forked by virglrenderer's render
 * server, and so is each CUDA context, started by the engine. A context whose worker has died is
 * "lost": its commands fail, other contexts do not notice, and the guest removes it with
 * CTX_DESTROY. A context that names no capset has no renderer: resources can be attached to it,
 * commands fail. Linux' driver makes one for every program that opens a frame buffer, and attaches
 * the buffer to it.
 */
#ifndef ENGINE_CONTEXT_H
#define ENGINE_CONTEXT_H

#include "context_kind.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct request;

/* NULL: there is none. */
struct context *context_find(struct engine *engine, uint32_t ctx_id);

/* Whether the context exists, has a renderer, and is not lost. */
bool context_has_renderer(const struct context *context);

bool context_alive(struct engine *engine, uint32_t ctx_id);

/*
 * 0; -ENOENT: no such context, or one without a renderer, or it is lost (it may become so here);
 * another error: no such ring.
 */
int context_create_fence(struct engine *engine, uint32_t ctx_id, uint32_t ring_idx,
                         uint64_t fence_id);

/*
 * Ends its render worker: its rings say so, its commands fail, and its fences wait until the guest
 * destroys it, or until context_give_answers(). context_lost() writes it to the journal.
 */
void context_end(struct engine *engine, struct context *context);
void context_lost(struct engine *engine, struct context *context);
void context_give_answers(struct engine *engine, struct context *context);

/* Its worker does not have the resource any more. */
void context_forget_resource(struct engine *engine, uint32_t resource_id);

/* The destructor for engine->contexts. */
void context_free(void *context);

/* One whose worker is on another host, from where the VM was moved. False: the id is taken,
 * there are too many, or the capset is unknown. */
bool context_add_lost(struct engine *engine, uint32_t ctx_id, uint32_t capset);

/* The engine ends: the rings of all contexts say so. */
void context_fail_all_rings(struct engine *engine);

/* Destroys all, one after the other: a guest may have many, and for each a process must end. */
void context_destroy_all(struct engine *engine);

/* Handlers, see control.h. */
uint32_t context_cmd_create(struct engine *engine, const struct request *request);
uint32_t context_cmd_submit(struct engine *engine, const struct request *request);
uint32_t context_cmd_destroy(struct engine *engine, const struct request *request);
uint32_t context_cmd_change_resource(struct engine *engine, const struct request *request);

#endif /* ENGINE_CONTEXT_H */
