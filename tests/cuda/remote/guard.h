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

/* Of a program that knows its libraries and the guard's socket, and no slice; to be freed. */
char **guard_environment(const struct guard *guard);

#endif
