/* SPDX-License-Identifier: MIT */
/* Commands for a context's renderer that do not come through a ring. */
#ifndef ENGINE_SUBMIT_H
#define ENGINE_SUBMIT_H

#include <stdint.h>

struct engine;
struct request;

/* A handler, see control.h. */
uint32_t submit_cmd(struct engine *engine, const struct request *request);

#endif /* ENGINE_SUBMIT_H */
