/* SPDX-License-Identifier: MIT */
/*
 * How far the GPU is behind with a class of work that is not measured. An event follows some of the
 * launches; those that have not come yet say how much work waits, which the arbiter is told. A
 * thread that would make it more than the arbiter allows waits, as if CUDA's own queue were full.
 */
#ifndef GOVERNOR_CUDA_BACKLOG_H
#define GOVERNOR_CUDA_BACKLOG_H

#include "work.h"

/* Markers that are awaited at most. */
#define BACKLOG_MARKERS 8

/**
 * struct marker - an event after some launches
 * @launches: since the one before
 * @is_stuck: it has not come for so long that nobody waits for it: its stream waits for something
 */
struct marker {
    CUcontext context;
    CUevent event;
    unsigned int launches;
    bool is_stuck;
};

/**
 * struct backlog - of one class; under the meter's lock; whoever takes a marker out also holds
 * @looks
 * @last: the marker that came last
 * @sum_ns, @sum_launches: of markers that came, the old ones' less and less
 * @seen: launches in them, up to what is enough
 * @ns: that one launch took; 0: unknown
 */
struct backlog {
    struct marker markers[BACKLOG_MARKERS];
    _Atomic unsigned int count;
    struct marker last;
    uint64_t sum_ns;
    uint64_t sum_launches;
    unsigned int seen;
    uint64_t ns;
};

struct meter;

/* After a launch that was not measured. May wait. */
void backlog_after(struct gpu *gpu, enum governor_class class, CUstream stream, bool per_thread);

/*
 * The class is measured from now on, and the arbiter has charged what still waits. Waits for
 * nothing: it may leave that to a later launch.
 */
void backlog_drop(struct meter *meter, enum governor_class class);

/* Under the meter's locks: the context ends, and its events with it. */
void backlog_forget(struct backlog *backlog, CUcontext context);
/* Under the meter's locks: what is of @from is of @to from now on. */
void backlog_rename(struct backlog *backlog, CUcontext from, CUcontext to);

#endif
