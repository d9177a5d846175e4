/* SPDX-License-Identifier: MIT */
/*
 * Contexts whose render worker is held up, or may be. virglrenderer waits for a worker's answer to
 * each blob, and for room in its socket. The engine would wait with it, and so would every other
 * program of the VM.
 *
 * So before a blob, and when too much is on the way (credits.h), the engine waits for an answer of
 * its own kind, a fence on ring 0, without standing still: until then the context is held, its
 * worker is sent nothing, and its commands are parked (parking.h).
 */
#ifndef ENGINE_HOLD_H
#define ENGINE_HOLD_H

#include <stdbool.h>
#include <stddef.h>

struct context;
struct engine;

/* Whether the worker must not be sent a message of @bytes yet; then the context is held. */
bool hold_unless_room(struct engine *engine, struct context *context, size_t bytes);

/* Whether the worker must not be asked for a blob yet; then the context is held. */
bool hold_unless_idle(struct engine *engine, struct context *context);

bool hold_is_on(struct engine *engine, struct context *context);

/*
 * A check that the worker lives: hold_probe() sends the fence on ring 0 that it has to answer, and
 * hold_unless_reached() holds the context if it has not. Whether it is held.
 */
void hold_probe(struct engine *engine, struct context *context);
bool hold_unless_reached(struct engine *engine, struct context *context);

#endif /* ENGINE_HOLD_H */
