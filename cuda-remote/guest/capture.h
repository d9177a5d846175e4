/* SPDX-License-Identifier: MIT */
#ifndef CUDA_REMOTE_GUEST_CAPTURE_H
#define CUDA_REMOTE_GUEST_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

/* No stream of the program is being captured. @begun: how many captures there were. */
bool capture_is_none(uint64_t *begun);

#endif
