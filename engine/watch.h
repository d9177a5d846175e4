/* SPDX-License-Identifier: MIT */
/* Faults of render workers. */
#ifndef ENGINE_WATCH_H
#define ENGINE_WATCH_H

#include <stdbool.h>

struct engine;

/* Ends each context whose worker has ended. To be called when engine->lifelines.fd is readable. */
void watch_lost(struct engine *engine);

/*
 * Called every few seconds, because nothing reports these faults, until it has been true twice
 * (engine->rests), and nothing has come from the guest meanwhile and no context was lost. Checks
 * the worker of each context. True: all of them rest (venus_rings.h).
 * - One that sleeps over commands in a ring (venus_rings.h) is woken.
 * - One that does not reach its probe is held (hold.h), and ended after ten minutes, or with a cap
 *   of 10 % after a hundred: a program that waits for an answer cannot be killed in the guest.
 * - The fences of one that was lost a minute ago are answered: a compositor may wait for them, and
 *   cannot be killed, either.
 */
bool watch_contexts(struct engine *engine);

#endif /* ENGINE_WATCH_H */
