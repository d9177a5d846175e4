/* SPDX-License-Identifier: MIT */
/* Capability sets: the kinds of context that the guest can have, and their abilities. */
#ifndef ENGINE_CAPSET_H
#define ENGINE_CAPSET_H

#include <stdint.h>

struct engine;
struct request;

/*
 * Fills engine->capsets with those that virglrenderer has and with CUDA's, in the order in which
 * the guest counts them. virglrenderer must have been started, if there is one.
 */
void capset_collect(struct engine *engine);

/*
 * A hash of all that the guest gets of them and keeps, and of @version, that of a saved state: a
 * saved VM can go on where it is the same. Never 0.
 */
uint64_t capset_hash(const struct engine *engine, uint32_t version);

/* Handlers, see control.h. */
uint32_t capset_cmd_get_info(struct engine *engine, const struct request *request);
uint32_t capset_cmd_get(struct engine *engine, const struct request *request);

#endif /* ENGINE_CAPSET_H */
