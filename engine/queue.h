/* SPDX-License-Identifier: MIT */
/* Chains of the guest: taken from the driver and passed to the handlers. */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include <linux/vgpu.h>
#include <stdint.h>

struct engine;

/**
 * struct queue_turn - requests that were taken
 * @queues: in: to look at; out: those that may have more. The driver announces the next request of
 * any other
 * @poll_us: in: how long to look
 * @wait_ms: in: how long to sleep then, until there is something; VGPU_EXCHANGE_FOREVER; 0: not at
 * all
 * @room: in: for how many requests, VGPU_EXCHANGE_MAX at most
 * @count, @requests: out
 * @event: out: of the driver; no @events: none
 * @state: out: VGPU_EXCHANGE_*
 */
struct queue_turn {
    uint32_t queues;
    uint32_t poll_us;
    uint32_t wait_ms;
    uint32_t room;
    uint32_t count;
    struct vgpu_queue_request requests[VGPU_EXCHANGE_MAX];
    struct vgpu_engine_event event;
    uint32_t state;
};

/*
 * Gives the driver the kept answer, and takes requests and an event. Sleeps for @turn->wait_ms;
 * what the engine's lifelines have ends that, too. 0 or a negative errno.
 */
int queue_take(struct engine *engine, struct queue_turn *turn);

/* Handles the requests that were taken. The last one's answer is kept for the next queue_take(). */
void queue_handle(struct engine *engine, const struct queue_turn *turn);

#endif /* ENGINE_QUEUE_H */
