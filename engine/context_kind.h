/* SPDX-License-Identifier: MIT */
/*
 * Kinds of contexts: a capset, and what its contexts do. They are Venus and CUDA. All calls to a
 * context's worker are in here, and those to Venus' count what they send (credits.h).
 */
#ifndef ENGINE_CONTEXT_KIND_H
#define ENGINE_CONTEXT_KIND_H

#include "credits.h"
#include "venus_rings.h"

#include <glib.h>
#include <linux/virtio_gpu.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct context;
struct cuda_context;
struct engine;
struct iovec;
struct resource;

/**
 * struct context_kind - errors are negative errno values; -EPIPE: the worker has ended
 * @capset: its id
 * @withholds: fences of a context whose worker has ended are withheld (fence.h)
 * @create: the worker; @connection: an open file of the caller's that hangs up when it has ended
 * @end: the worker
 * @submit: commands that do not come through shared memory; they may be changed. -EMSGSIZE: too
 * many for a message. -EINVAL: they are no commands. -EMFILE: the context has more rings than are
 * allowed
 * @fence: on a timeline of the context
 * @attach, @detach: a resource that virglrenderer has
 * @blob: makes one, for @resource, and waits for the worker
 * @wake: the worker, if it sleeps over work; true: it did
 * @rest: whether it sleeps, and has nothing to do until its guest rings
 * @fail: tells the guest, through shared memory, that the worker has ended
 * @receive: what the worker sends by the connection; false: it has ended. NULL: nothing
 */
struct context_kind {
    uint32_t capset;
    bool withholds;
    int (*create)(struct engine *engine, struct context *context, uint32_t nlen, const char *name,
                  int *connection);
    void (*end)(struct context *context);
    int (*submit)(struct engine *engine, struct context *context, uint32_t *commands, size_t words);
    int (*fence)(struct context *context, uint32_t ring_idx, uint64_t id);
    void (*attach)(struct context *context, uint32_t resource_id);
    void (*detach)(struct context *context, uint32_t resource_id);
    int (*blob)(struct context *context, const struct virtio_gpu_resource_create_blob *cmd,
                const struct iovec *backing, struct resource *resource);
    bool (*wake)(struct engine *engine, struct context *context);
    bool (*rest)(struct engine *engine, struct context *context);
    void (*fail)(struct engine *engine, struct context *context);
    bool (*receive)(struct context *context);
};

/**
 * struct context
 * @serial: of no other context that this engine has had: guests use their numbers again
 * @kind: NULL: it has no renderer, and never had
 * @woken: the journal already says that its worker was woken
 * @rings: of a Venus context
 * @cuda: of a CUDA context whose worker has not been ended
 * @dismissed: its guest has asked for its worker's end
 * @resources: ids of those that its worker has
 * @credits, @held_since: see hold.h; monotonic, 0: it is not held
 * @probe: the last fence that was sent to the worker to check that it lives
 * @lost_since: monotonic
 * @withholds: fenced answers of the lost context are withheld (fence.h)
 */
struct context {
    uint32_t id;
    uint64_t serial;
    const struct context_kind *kind;
    bool lost;
    bool dismissed;
    bool woken;
    struct venus_rings rings;
    struct cuda_context *cuda;
    GHashTable *resources;
    struct credits credits;
    gint64 held_since;
    uint64_t probe;
    gint64 lost_since;
    bool withholds;
};

/* NULL: there is none of that capset. */
const struct context_kind *context_kind_find(uint32_t capset);

#endif /* ENGINE_CONTEXT_KIND_H */
