/* SPDX-License-Identifier: MIT */
/*
 * Answers to requests: made by handlers, sent when the request is executed, or when its fence is
 * done.
 */
#ifndef ENGINE_ANSWER_H
#define ENGINE_ANSWER_H

#include <stddef.h>

struct engine;
struct request;

/*
 * For handlers: makes engine->response @size zeroed bytes, beginning with the header that the
 * dispatcher fills in. Valid until the next call.
 */
void *answer_begin(struct engine *engine, size_t size);

/*
 * The answer is engine->response with a complete header. Always ends in exactly one push, unless
 * the epoch ends before.
 */
void answer_send(struct engine *engine, const struct request *request);

#endif /* ENGINE_ANSWER_H */
