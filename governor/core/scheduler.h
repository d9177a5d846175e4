/* SPDX-License-Identifier: MIT */
/*
 * Decides who may use the engines of one class of a GPU: start-time fair queueing over slices, by
 * leases that one slice at a time has under contention; budgets for hard caps; priorities with a
 * minimum for the lower ones. See governor/DESIGN.md. Each class has a scheduler of its own.
 *
 * Pure: it reads the members' usage pages, writes their grant pages, and is told the time. The
 * caller wakes members whose grant has changed, and calls scheduler_run() after each event and at
 * the time it returned. Not thread-safe. Times are ns of CLOCK_MONOTONIC, or of GPU time.
 */
#ifndef GOVERNOR_SCHEDULER_H
#define GOVERNOR_SCHEDULER_H

#include "scheduler_state.h"

void scheduler_init(struct scheduler *scheduler, uint64_t now);
void scheduler_clear(struct scheduler *scheduler);

struct sched_slice *scheduler_add_slice(struct scheduler *scheduler,
                                        const struct slice_settings *settings);
/* Without members. Frees @slice. */
void scheduler_remove_slice(struct scheduler *scheduler, struct sched_slice *slice);

/* @member's pages are set, the rest is zero. The caller keeps ownership. */
void scheduler_add_member(struct sched_slice *slice, struct sched_member *member, uint64_t now);
/*
 * Charges its work since the last look, and its work in flight since that began: a process that is
 * killed pays as much as one that waits for the end.
 */
void scheduler_remove_member(struct scheduler *scheduler, struct sched_member *member,
                             uint64_t now);

/*
 * Processes of @slice that are no members have used @ns of the engines: its members pay for them,
 * up to a debt of GOVERNOR_IN_FLIGHT_MOST_NS. It is not in @gpu_ns, from which leases and the lower
 * classes' minimum are counted.
 */
void scheduler_charge(struct scheduler *scheduler, struct sched_slice *slice, uint64_t ns);

/* A message of @member arrived: it is alive. */
void scheduler_heard(struct sched_member *member);
/* @member's work in flight has not begun. */
void scheduler_stalled(struct sched_member *member, uint64_t now);

/* Since when work of @slice is in flight, by its members' pages; 0: none is. */
uint64_t scheduler_in_flight_since(const struct sched_slice *slice, uint64_t now);

/*
 * Looks at all members, decides, writes grants. Returns when to be called again at the latest;
 * TIME_NEVER: not needed.
 */
uint64_t scheduler_run(struct scheduler *scheduler, uint64_t now);

#endif
