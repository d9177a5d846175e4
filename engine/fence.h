/* SPDX-License-Identifier: MIT */
/*
 * Answers that wait for the GPU. A request with VIRTIO_GPU_FLAG_FENCE is answered when the work
 * before it on its timeline is done. A timeline is a ring of a context
 * (VIRTIO_GPU_FLAG_INFO_RING_IDX). No work is on the one global timeline: a command that is fenced
 * there is done when it has been executed.
 *
 * virglrenderer gets our own numbers as fence ids, never the guest's, so a guest cannot confuse one
 * fence with another.
 */
#ifndef ENGINE_FENCE_H
#define ENGINE_FENCE_H

#include <glib.h>
#include <linux/vgpu.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limit of withheld answers: half of the guest's control queue. */
#define FENCE_MAX_WITHHELD 128u

struct request;
struct vgpu_transport;

/**
 * struct fence_table
 * @pending: struct fence, oldest first
 * @own: how many of @pending are the engine's own
 * @withheld: how many of them are, see fence_withhold()
 * @released: see fence_released()
 * @keep: see fence_keep_next()
 * @kept, @kept_response: an answer that was kept; no token: there is none
 * @wake_fd: an eventfd that the main thread sleeps on; -1: none
 */
struct fence_table {
    struct vgpu_transport *transport;
    GMutex lock;
    GQueue pending;
    uint64_t last_id;
    guint own;
    guint withheld;
    gint released;
    int wake_fd;
    bool keep;
    struct vgpu_queue_answer kept;
    GByteArray *kept_response;
};

void fence_table_init(struct fence_table *table, struct vgpu_transport *transport);
void fence_table_clear(struct fence_table *table);

/* Answers now, whatever is pending; cut to the guest's room. */
void fence_push(struct fence_table *table, const struct request *request,
                const GByteArray *response);

/*
 * Whether the next answer of fence_push() is kept for the next exchange, which carries it:
 * fence_kept(), NULL if there is none, and fence_kept_done(). Whoever does something else before
 * sends it: fence_flush(), so that no later answer of its timeline comes first.
 */
void fence_keep_next(struct fence_table *table, bool keep);
struct vgpu_queue_answer *fence_kept(struct fence_table *table);
void fence_kept_done(struct fence_table *table);
void fence_flush(struct fence_table *table, uint64_t epoch);

/* Answers when the fence with the returned id (for virglrenderer) is done. */
uint64_t fence_add(struct fence_table *table, const struct request *request,
                   const GByteArray *response);

/* virglrenderer did not accept the fence. True if it is still there and has been removed. */
bool fence_take_back(struct fence_table *table, uint64_t id);

/* Answers together with the last pending answer of its timeline. False: none is pending. */
bool fence_queue_behind(struct fence_table *table, const struct request *request,
                        const GByteArray *response);

/*
 * From virglrenderer, on any thread. Completes the fence and all earlier ones of its timeline; or
 * none if @connection, the worker's, has hung up: all fences of a dead worker are reported as done,
 * and watch_lost() handles that. -1: whatever has happened to the worker.
 */
void fence_signal_ring(struct fence_table *table, uint32_t ctx_id, uint32_t ring_idx, uint64_t id,
                       int connection);

/*
 * Completes what a context leaves behind, with an error: its work will never be done. To be called
 * after virglrenderer has released the context.
 */
void fence_fail_context(struct fence_table *table, uint32_t ctx_id);

/*
 * A guest takes any answer for the end of the work: Linux signals its fence without checking the
 * type. So the answers of a context whose worker is lost, which fence_withhold() turns into errors,
 * are withheld until fence_fail_context(). False: there are FENCE_MAX_WITHHELD already.
 */
bool fence_withhold(struct fence_table *table, uint32_t ctx_id);
bool fence_add_withheld(struct fence_table *table, const struct request *request,
                        const GByteArray *response);

/* A fence of the engine's own on a context's ring 0 (credits.h); returns its id. */
uint64_t fence_add_own(struct fence_table *table, uint32_t ctx_id);

bool fence_is_pending(struct fence_table *table, uint64_t id);

/*
 * False: it is done already. Otherwise its end wakes the main thread and sets fence_released(), as
 * fence_release() does.
 */
bool fence_wake_when_done(struct fence_table *table, uint64_t id);
bool fence_released(struct fence_table *table);
void fence_release(struct fence_table *table);
void fence_take_released(struct fence_table *table);

/* Forgets all without an answer: the epoch is over. */
void fence_forget_all(struct fence_table *table);

#endif /* ENGINE_FENCE_H */
