/* SPDX-License-Identifier: MIT */
/*
 * Answers that wait for the GPU. A request with VIRTIO_GPU_FLAG_FENCE is answered when the work
 * before it on its timeline is done. A timeline is a ring of a context
 * (VIRTIO_GPU_FLAG_INFO_RING_IDX) or the one global timeline.
 *
 * virglrenderer is given numbers of our own as fence ids, never the guest's, so a guest can't
 * confuse one fence with another.
 */
#ifndef ENGINE_FENCE_H
#define ENGINE_FENCE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct request;

struct fence_table {
    GMutex lock;
    GQueue pending; /* struct fence, oldest first */
    uint64_t last_id;
};

void fence_table_init(struct fence_table *table);
void fence_table_clear(struct fence_table *table);

/*
 * Answers a request that has been carried out, now or when its fence is done. The answer is
 * engine->response with a complete header. Always ends in exactly one push, unless the epoch ends
 * before.
 */
void fence_respond(struct engine *engine, const struct request *request);

/* The answer now, whatever is pending; cut to the guest's room. */
void fence_push(struct engine *engine, const struct request *request);

/* From virglrenderer, on any thread. Completes the fence and all earlier ones of its timeline. */
void fence_signal_ring(struct engine *engine, uint32_t ctx_id, uint32_t ring_idx, uint64_t id);
void fence_signal_global(struct engine *engine, uint32_t id);

/*
 * Completes what a context leaves behind, with an error: its work will never be done. To be called
 * after virglrenderer has let go of the context.
 */
void fence_fail_context(struct engine *engine, uint32_t ctx_id);

/*
 * A fence of the engine's own on a context's ring 0, which a living worker signals at once. Returns
 * its id, for virglrenderer, or 0 where something is pending on that ring, an earlier probe
 * perhaps.
 */
uint64_t fence_probe_begin(struct engine *engine, uint32_t ctx_id);
void fence_probe_cancel(struct engine *engine, uint64_t id);

/* Forgets all without an answer: the epoch is over. */
void fence_forget_all(struct engine *engine);

#endif /* ENGINE_FENCE_H */
