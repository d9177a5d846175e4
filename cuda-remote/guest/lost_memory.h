/* SPDX-License-Identifier: MIT */
/*
 * Memory of a vGPU that is gone is replaced by memory of the program's own, which then goes on to
 * its next call. There is one page of messages, and at most one arena.
 */
#ifndef CUDA_REMOTE_GUEST_LOST_MEMORY_H
#define CUDA_REMOTE_GUEST_LOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* From now on a signal handler looks at what the program touches. */
void lost_memory_replace(const void *page, size_t bytes);
/* The page is not the library's any more. */
void lost_memory_forget(void);
/* What of it is a vGPU's is replaced, too. */
void lost_memory_replace_arena(uint64_t address, uint64_t end);
/* In a child of fork(). */
void lost_memory_begin_child(void);

#endif
