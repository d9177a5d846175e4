/* SPDX-License-Identifier: MIT */
/* Chains of the guest: taken from the driver and passed to the handlers. */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include <stdint.h>

struct engine;

/*
 * Handles at most @budget chains of a queue. 1: there may be more; 0: it is empty; negative errno:
 * ESTALE, EPROTO and ENOTCONN as of pop, all mean to wait for the next event.
 */
int queue_run(struct engine *engine, uint32_t queue, unsigned int budget);

#endif /* ENGINE_QUEUE_H */
