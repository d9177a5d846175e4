/* SPDX-License-Identifier: MIT */
/*
 * Guards of slices, and programs that reach CUDA by them. Their GPU is the fake card, in a tree of
 * files that has no render node, so they offer CUDA alone.
 */
#ifndef TESTS_CUDA_REMOTE_GUARD_H
#define TESTS_CUDA_REMOTE_GUARD_H

#include "kit.h"

struct guard {
    GPid pid;
    char *socket, *vulkan, *log;
};

/* Of that slice of kit_live, when it serves. */
struct guard guard_open(const char *slice);
/* Ends it, which must say nothing that its tests did not expect. */
void guard_close(struct guard *guard);
void guard_clear(struct guard *guard);
/* To be freed. */
char *guard_log(const struct guard *guard);

/*
 * remote/client with that case, which knows its libraries and the socket, and no slice. @output: a
 * pipe from it; NULL: none.
 */
GPid guard_start_client(const struct guard *guard, const char *name, int *output);
void guard_await_client(GPid pid, int wanted);

#endif
