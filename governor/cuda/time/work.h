/* SPDX-License-Identifier: MIT */
/*
 * The one place where the door's work meets the member: what kind it is, and what is charged
 * without a turn of its own.
 *
 * The arbiter has one lease for all kinds so far, so a copy waits for the same turn as a kernel.
 * When the member knows classes of work, they are passed here.
 */
#ifndef GOVERNOR_CUDA_WORK_H
#define GOVERNOR_CUDA_WORK_H

#include "gpu.h"

/* What executes it: the GPU's processors, or its copy engines. */
enum work_class { WORK_COMPUTE, WORK_COPY };

/*
 * So much work may wait on the GPU while the slice is not measured: that long a rival that comes is
 * held up at most. It is as if CUDA's own queue were shorter.
 */
#define WORK_BACKLOG_NS 32000000u

/*
 * As governor_member_begin(), _end(), and so on. @owed: nanoseconds of work that had no turn;
 * whoever calls work_end() next pays for them.
 */
uint64_t work_begin(struct gpu *gpu, enum work_class class, uint64_t ns, bool deferred);
void work_end(struct gpu *gpu, enum work_class class, uint64_t debit, uint64_t ns);
void work_cancel(struct gpu *gpu, uint64_t debit);
void work_owe(struct gpu *gpu, enum work_class class, uint64_t ns);
uint64_t work_owed(const struct gpu *gpu);

#endif
