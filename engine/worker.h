/* SPDX-License-Identifier: MIT */
/*
 * Whether a context's render worker still exists.
 *
 * When a worker has closed its end of the context's connection, virglrenderer reports all of the
 * context's fences as done, though their work never will be. So the engine and the guard keep a
 * duplicate of their own end and check it before they believe a fence: the duplicate hangs up no
 * later than virglrenderer's own. A pidfd would be too late: a process closes its files before it
 * counts as dead, and a worker that gives up closes its connection first and ends afterwards.
 */
#ifndef ENGINE_WORKER_H
#define ENGINE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * As virgl_renderer_context_create_with_flags(), of a Venus context. @connection: the duplicate,
 * owned by the caller. Fails with EIO if it cannot be found. No other thread may open files
 * meanwhile.
 */
int worker_create_context(uint32_t ctx_id, uint32_t capset, uint32_t nlen, const char *name,
                          int *connection);

/* Whether the worker has closed its end; from any thread. False for -1, which is none. */
bool worker_is_gone(int connection);

#endif /* ENGINE_WORKER_H */
