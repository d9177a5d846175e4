/* SPDX-License-Identifier: MIT */
/*
 * GPU time of slices while they are alone on their GPU. Their arbiter does not measure it then, but
 * many GPU drivers do: in the fdinfo of the processes' files, or, NVIDIA's, as the per cent of the
 * last half minute in which the GPU computed, for whomever. What is before the first look at a
 * slice is not known.
 */
#ifndef METER_ALONE_TIME_H
#define METER_ALONE_TIME_H

#include "host-agent/meter/arbiter_reports.h"
#include "lib/host_root.h"

/* Of all slices of a host. */
typedef struct AloneTime AloneTime;

AloneTime *alone_time_new(HostRoot *root);

void alone_time_free(AloneTime *times);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AloneTime, alone_time_free)

/* An arbiter has reported @use. Sets its alone_ns, which never decreases, and alone_known. */
void alone_time_add(AloneTime *times, const ReportedSlice *slice, SliceUse *use);

/* The slice is gone. */
void alone_time_forget(AloneTime *times, const char *uuid);

#endif
