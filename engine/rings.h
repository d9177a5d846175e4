/* SPDX-License-Identifier: MIT */
/*
 * The rings of a context (venus_rings.h), in memory that it has made: @maker is its serial
 * (context.h).
 */
#ifndef ENGINE_RINGS_H
#define ENGINE_RINGS_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct venus_rings;

/* Wakes the context's worker for each ring that it sleeps over. True: there was one. */
bool rings_wake(struct engine *engine, uint32_t ctx_id, uint64_t maker,
                const struct venus_rings *rings);

/* Whether the worker rests over all of them (venus_rings.h). */
bool rings_rest(struct engine *engine, uint64_t maker, const struct venus_rings *rings);

/* Marks the worker as lost in each ring: Mesa ends a program that sees that. */
void rings_fail(struct engine *engine, uint64_t maker, const struct venus_rings *rings);

#endif /* ENGINE_RINGS_H */
