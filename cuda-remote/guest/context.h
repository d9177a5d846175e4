/* SPDX-License-Identifier: MIT */
/* The thread's current context, as far as it is known without asking (context.c). */
#ifndef CUDA_REMOTE_GUEST_CONTEXT_H
#define CUDA_REMOTE_GUEST_CONTEXT_H

#include <stdint.h>

/**
 * known_context - what a thread knows (exchange.c keeps it)
 * @epoch: when that was known (kept_epoch()); 0: never
 * @value: as the program has it
 * @number: the object's
 */
struct known_context {
    uint64_t epoch, value, number;
};

/* It may be another one now. */
void context_forget(void);
/* Its number, which is asked for if it must be; 0: there is none, or it can't be known. */
uint64_t context_number(void);

#endif
