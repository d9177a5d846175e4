/* SPDX-License-Identifier: MIT */
/*
 * What a context's render worker was sent and may not have handled yet.
 *
 * A worker handles one message after the other, and many may make it wait: for a ring that compiles
 * pipelines, for the lock of a queue whose ring is in a submission, for a ring's thread to end. It
 * answers only blobs and fences. A fence on ring 0, the CPU's timeline, is signalled when the
 * worker comes to it, so it says that all before it is handled.
 */
#ifndef ENGINE_CREDITS_H
#define ENGINE_CREDITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What may be on the way to a worker. Its socket has room for four times as much; a full one would
 * stop the engine.
 */
#define CREDITS_MAX 64u

/**
 * struct credits - sums since the context was made; a message costs one, and more if it is long
 * @sent: of all messages
 * @waits: @sent behind the last message that may make the worker wait
 * @answered: @sent behind the last message that it has surely handled
 * @fence: the newest fence on ring 0; 0: it is answered
 * @fence_sent: @sent behind that
 */
struct credits {
    uint64_t sent;
    uint64_t waits;
    uint64_t answered;
    uint64_t fence;
    uint64_t fence_sent;
};

uint64_t credits_cost(size_t bytes);
uint64_t credits_in_flight(const struct credits *credits);

/* The worker was sent a message, or a fence. */
void credits_spend(struct credits *credits, size_t bytes, bool may_wait);
void credits_spend_fence(struct credits *credits, uint32_t ring_idx, uint64_t id);

/* It has answered @fence; it has answered a blob. */
void credits_fence_answered(struct credits *credits);
void credits_blob_answered(struct credits *credits);

#endif /* ENGINE_CREDITS_H */
