/* SPDX-License-Identifier: MIT */
/*
 * GPU time. While the arbiter measures the slice, launches are gathered into batches of one stream.
 * A batch waits for its turn before its first launch, and ends by one event after its last. If
 * nothing more is launched, the thread that sees ends records that event.
 *
 * While the slice is not measured, a launch is counted, and now and then a marker is placed, so
 * that the GPU does not get far behind.
 *
 * A stream that captures is never touched; what was captured is charged when the graph is launched.
 * Our own calls of the driver would end a capture of another thread that forbids such calls. So the
 * calling thread relaxes its mode before them, and exchanges it back.
 */
#ifndef GOVERNOR_CUDA_METER_H
#define GOVERNOR_CUDA_METER_H

#include "gpu.h"

/**
 * struct launch - one call
 * @what, @size: what is launched, and about how much: they tell apart launches that take different
 * times
 * @class: of the work
 * @guess_ns: how long it takes, if it was not measured yet; 0: nothing is known
 * @stream, @per_thread: where; whether stream 0 is the thread's own
 *
 * The rest is the meter's.
 */
struct batch;

struct launch {
    const void *what;
    uint64_t size;
    enum governor_class class;
    uint64_t guess_ns;
    CUstream stream;
    bool per_thread;

    struct meter *meter;
    struct batch *batch;
    uint64_t key;
    uint64_t estimate_ns;
    bool is_known;
};

/*
 * Before the driver's call, which must follow. May wait for the slice's turn. False: no call must
 * follow. The slice is required and cannot be joined, and the context was made past the door.
 */
bool meter_before(struct launch *launch);

/* After it, if the launch has a batch by now: then it is measured. */
void meter_launched(struct launch *launch, bool succeeded);

/*
 * In place of meter_before(), for small work that waits for nothing: it is a part of what is
 * measured anyway, or of a graph, or is owed by its guess, and charged with the next work of its
 * class. False: too much is owed.
 */
bool meter_owe(struct gpu *gpu, struct launch *launch);

/*
 * The program waits for the stream, or may: what was launched there is all of its batch. @context:
 * NULL: the thread's own.
 */
void meter_close(CUstream stream, bool per_thread);
void meter_close_all(CUcontext context);
/* The same, and no call of ours uses the stream before it is launched there again. */
void meter_leave(CUstream stream, bool per_thread);

/* Before the stream ends: no call of ours uses it any more. */
void meter_stream_ends(CUstream stream);

/* Before @context ends: what is in flight there is charged now. */
void meter_context_ends(struct gpu *gpu, CUcontext context);

/*
 * Before a call of the driver's that may end @context, and after it. In between, nobody looks at
 * what is in flight there, and no event of it is used. @is_over: as meter_context_ends(); else all
 * is as before. One context of a GPU at a time.
 */
void meter_set_aside(struct gpu *gpu, CUcontext context);
void meter_take_back(struct gpu *gpu, CUcontext context, bool is_over);

/* Also true if that cannot be told. */
bool meter_is_capturing(CUstream stream, bool per_thread);

#endif
