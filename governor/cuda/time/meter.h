/* SPDX-License-Identifier: MIT */
/*
 * GPU time. While the arbiter measures the slice, launches are gathered into batches of one stream.
 * A batch waits for its turn before its first launch, and ends by one event after its last. No
 * batch is open for a launch that does not come: what is left over is charged by the estimates.
 *
 * A stream that captures is never touched; what was captured is charged when the graph is launched.
 */
#ifndef GOVERNOR_CUDA_METER_H
#define GOVERNOR_CUDA_METER_H

#include "gpu.h"

/**
 * struct launch - one call
 * @key: of costs.h
 * @stream, @per_thread: where; whether stream 0 is the thread's own
 *
 * The rest is the meter's.
 */
struct launch {
    uint64_t key;
    CUstream stream;
    bool per_thread;

    struct meter *meter;
    uint64_t batch;
    uint64_t ns;
};

/* Before the driver's call, which must follow. May wait for the slice's turn. */
void meter_before(struct launch *launch);

/* After it: returns @result. */
CUresult meter_after(struct launch *launch, CUresult result);

/* Before @context ends: what is in flight there is charged now. */
void meter_context_ends(struct gpu *gpu, CUcontext context);

#endif
