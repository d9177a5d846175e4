/* SPDX-License-Identifier: MIT */
/*
 * The engine over the real virglrenderer and its render workers, on lavapipe, and its guest's
 * programs. Here virglrenderer does what the unit tests fake.
 */
#ifndef ENGINE_LIVE_H
#define ENGINE_LIVE_H

#include "engine.h"
#include "fake_driver.h"

#include <sys/types.h>

extern struct fake_driver live_driver;
extern struct engine live_engine;

/* @limit: seconds after which the process ends, because an engine may wait forever. */
void live_begin(int *argc, char ***argv, unsigned int limit);
void live_end(void);

/* All that the guest has made is destroyed. */
void live_reset(void);

/* A control command; returns the chain's token, whose answer type is 0 for none. */
uint32_t live_send(const void *request, size_t size);
uint32_t live_type_of(uint32_t token);

/* One turn of the loop; and as many as are needed until there is an answer. */
void live_turn(void);
uint32_t live_wait_for(uint32_t token);

void live_create_context(uint32_t ctx_id);
uint32_t live_destroy_context(uint32_t ctx_id);
uint32_t live_create_blob(uint32_t ctx_id, uint64_t size, uint32_t *id);
uint32_t live_submit(uint32_t ctx_id, uint32_t flags, const uint32_t *words, size_t count);

/* A ring, as the guest sees it: in the window. */
uint32_t *live_make_ring(uint32_t ctx_id);

/* Makes the worker wait until the ring has reached @seqno. */
uint32_t live_wait_for_ring(uint32_t ctx_id, uint32_t flags, uint32_t seqno);

void live_put_in_ring(uint32_t *ring, const uint32_t *words, size_t count);

/* The worker of the only context. */
pid_t live_worker(void);

#endif /* ENGINE_LIVE_H */
