/* SPDX-License-Identifier: MIT */
/*
 * Dispatch of control commands. A handler gets a request of at least its command's declared size
 * and returns the response's type; an OK other than NODATA comes with answer_begin(). The
 * dispatcher handles fences and the push.
 */
#ifndef ENGINE_CONTROL_H
#define ENGINE_CONTROL_H

#include <stdint.h>

struct engine;
struct request;

/* Executes a request and answers it, now or when its fence is done. */
void control_process(struct engine *engine, const struct request *request);

/* Executes a request that nobody waits for; the type of its response. */
uint32_t control_execute(struct engine *engine, const struct request *request);

/* Answers a request that was not executed, or with what its handler has made. */
void control_answer(struct engine *engine, const struct request *request, uint32_t type);

/* The id of the resource that a request names; 0: none. */
uint32_t control_resource_of(const struct request *request);

#endif /* ENGINE_CONTROL_H */
