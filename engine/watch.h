/* SPDX-License-Identifier: MIT */
/* Checks of render workers, every few seconds: nothing reports these faults. */
#ifndef ENGINE_WATCH_H
#define ENGINE_WATCH_H

struct engine;

/*
 * Checks the worker of each Venus context:
 * - One that is dead is found by its fence. virglrenderer's thread would spin on its closed socket.
 * - One that sleeps over commands in a ring (venus_rings.h) is woken.
 * - One that does not reach its probe is held (hold.h), and ended after ten minutes: a program that
 *   waits for an answer cannot be killed in the guest.
 */
void watch_contexts(struct engine *engine);

#endif /* ENGINE_WATCH_H */
