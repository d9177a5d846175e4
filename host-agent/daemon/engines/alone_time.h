/* SPDX-License-Identifier: MIT */
/*
 * GPU time of slices while they are alone on their GPU. Their arbiter does not measure it then, but
 * many GPU drivers do: in the fdinfo of the processes' files, or, NVIDIA's, as the per cent of the
 * last half minute in which the GPU computed, for whomever. What is before the first look at a
 * slice is not known.
 */
#ifndef VGPUD_ENGINES_ALONE_TIME_H
#define VGPUD_ENGINES_ALONE_TIME_H

#include "host-agent/daemon/engines/arbiter.h"
#include "lib/host_root.h"

/* Of all slices of a host. */
typedef struct AloneTime AloneTime;

AloneTime *alone_time_new(HostRoot *root);

void alone_time_free(AloneTime *times);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AloneTime, alone_time_free)

/*
 * The arbiter of @gpu has reported @use of slice @uuid, and its processes @pids (of guint). Sets
 * alone_ns and alone_known of @use. @now: of CLOCK_MONOTONIC in us.
 */
void alone_time_add(AloneTime *times, const char *gpu, const char *uuid, SliceUse *use,
                    const GArray *pids, gint64 now);

/* The slice is gone. */
void alone_time_forget(AloneTime *times, const char *uuid);

#endif
