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

/**
 * AloneReport - of an arbiter, beside a slice's use
 * @pids: the slice's processes, of guint
 * @measured: GPU time of all slices of the GPU, ns
 * @now: of CLOCK_MONOTONIC, us
 */
typedef struct {
    const GArray *pids;
    guint64 measured;
    gint64 now;
} AloneReport;

/*
 * The arbiter of @gpu has reported @use of slice @uuid. Sets alone_ns and alone_known of @use.
 * alone_ns never decreases.
 */
void alone_time_add(AloneTime *times, const char *gpu, const char *uuid, SliceUse *use,
                    const AloneReport *report);

/* The slice is gone. */
void alone_time_forget(AloneTime *times, const char *uuid);

#endif
