/* SPDX-License-Identifier: MIT */
/*
 * Kernels that take so many nanoseconds, for programs that run on the fake card and on a real one:
 * there a function is a number, here it is PTX, which the driver compiles.
 */
#ifndef TESTS_CUDA_SPIN_H
#define TESTS_CUDA_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* There is a context. Returns a CUresult. */
int spin_open(void);
/* One block of one warp. @stream: NULL: the default one. */
int spin_launch(uint64_t ns, void *stream);
bool spin_is_fake(void);

#endif
