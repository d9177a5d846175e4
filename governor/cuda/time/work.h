/* SPDX-License-Identifier: MIT */
/*
 * The one place where the door's work meets the member: its class, and what is charged without a
 * turn of its own. Copies from and to the host are of the class copy, all else is compute.
 */
#ifndef GOVERNOR_CUDA_WORK_H
#define GOVERNOR_CUDA_WORK_H

#include "gpu.h"

/*
 * So much work may wait on the GPU while the slice is not measured, unless the arbiter says it:
 * that long a rival that comes is held up at most. It is as if CUDA's own queue were shorter.
 */
#define WORK_BACKLOG_NS 32000000u

/*
 * As governor_member_submit(), _end(), and so on. What is owed, in nanoseconds, is work that had no
 * turn; whoever calls work_end() next for its class pays for it.
 */
uint64_t work_begin(struct gpu *gpu, const struct governor_work *work);
void work_end(struct gpu *gpu, enum governor_class class, uint64_t debit, uint64_t ns);
/* As work_end(), if it is known when it ran, unless something is owed: that has no place in time.
 */
void work_ran(struct gpu *gpu, enum governor_class class, uint64_t debit, uint64_t begin_at,
              uint64_t end_at);
void work_cancel(struct gpu *gpu, uint64_t debit);
void work_owe(struct gpu *gpu, enum governor_class class, uint64_t ns);
uint64_t work_owed(const struct gpu *gpu, enum governor_class class);

#endif
