/* SPDX-License-Identifier: MIT */
/* Declarations that the scheduler's files share. */
#ifndef GOVERNOR_SCHEDULER_PARTS_H
#define GOVERNOR_SCHEDULER_PARTS_H

#include "clock.h"
#include "scheduler_state.h"

/*
 * A lease under contention; among slices that have always had work for a while, which nobody has to
 * wait for and for which each handover costs; and without contention.
 */
#define QUANTUM_NS        (4 * NS_PER_MS)
#define QUANTUM_STEADY_NS (16 * NS_PER_MS)
#define QUANTUM_ALONE_NS  (100 * NS_PER_MS)
/* Whoever has paused for so long returns. */
#define PAUSE_NS (4 * NS_PER_MS)
/*
 * While a holder has nothing to do but is expected to have, the GPU is kept for it: a quarter of a
 * submission, within the first two values; an eighth, if that is longer, up to the third.
 */
#define PATIENCE_MIN_NS  (100 * NS_PER_US)
#define PATIENCE_MAX_NS  (500 * NS_PER_US)
#define PATIENCE_LONG_NS (30 * NS_PER_MS)
/* Times that differ by less are not told apart: an end is seen later than it is. */
#define NOTICE_NS (150 * NS_PER_US)
/*
 * How long to wait for a holder that does not begin, or whose work does not end in time: a quarter
 * of a submission, within these values.
 */
#define GRACE_NS      (10 * NS_PER_MS)
#define GRACE_MOST_NS (100 * NS_PER_MS)
/*
 * The same for a member that took longer than that to react during the last second: its threads are
 * held up now and then, and see no ends.
 */
#define GRACE_HELD_NS (300 * NS_PER_US)
/*
 * Whoever has missed so many leases in a row is not held up now and then, but always slow. A lease
 * is kept for it as long as it takes.
 */
#define MOST_MISSED 3
#define HELD_FOR_NS NS_PER_S
/*
 * A slice without work for this time no longer contends: a quarter of a submission, within these
 * values.
 */
#define IDLE_AFTER_NS      (10 * NS_PER_MS)
#define IDLE_AFTER_MOST_NS (100 * NS_PER_MS)
/*
 * How much a free slice may queue on the GPU: while no other has members, and while those could
 * begin to work at any time.
 */
#define BACKLOG_ALONE_NS (200 * NS_PER_MS)
#define BACKLOG_NS       (32 * NS_PER_MS)
/*
 * What a slice may have on the GPU while nobody has to wait for it; and what each of its processes
 * may, however many they are.
 */
#define DEPTH_STEADY_NS (2 * NS_PER_MS)
#define DEPTH_LEAST_NS  (50 * NS_PER_US)
/* The depth of a cap's budget in time, and the part of it that makes a lease worthwhile. */
#define CAP_DEPTH_NS (160 * NS_PER_MS)
#define CAP_SLOT_NS  (16 * NS_PER_MS)
/* The lower classes' minimum of the GPU, given in slots. */
#define FLOOR_RATE    0.05
#define FLOOR_SLOT_NS (2 * NS_PER_MS)

#define SLICE(scheduler, i) ((struct sched_slice *)g_ptr_array_index((scheduler)->slices, i))
#define MEMBER(slice, i)    ((struct sched_member *)g_ptr_array_index((slice)->members, i))

static inline double slice_weight(const struct scheduler *scheduler,
                                  const struct sched_slice *slice)
{
    return scheduler->policy == POLICY_SHARES ? slice->weight : 1;
}

static inline unsigned slice_priority(const struct scheduler *scheduler,
                                      const struct sched_slice *slice)
{
    return scheduler->policy == POLICY_SHARES ? slice->settings.priority : 0;
}

/* A part of one of @slice's submissions, as far as known, within bounds. */
static inline uint64_t slice_batch_part(const struct sched_slice *slice, unsigned part,
                                        uint64_t least_ns, uint64_t most_ns)
{
    return (uint64_t)CLAMP(slice->batch_ns / part, (double)least_ns, (double)most_ns);
}

/* GPU time by weight, including work in flight. */
static inline double slice_virtual(const struct scheduler *scheduler,
                                   const struct sched_slice *slice)
{
    return slice->virtual_ns + (double)slice->in_flight_ns / slice_weight(scheduler, slice);
}

static inline void scheduler_call_at(struct scheduler *scheduler, uint64_t at)
{
    if (at < scheduler->deadline)
        scheduler->deadline = at;
}

/* promises.c: each slice's weight. */
void promises_update(struct scheduler *scheduler);

/* caps.c: each slice's maximum, by the policy. */
void caps_update(struct scheduler *scheduler, uint64_t now);
/* Whether the cap lets @slice go on. */
bool caps_allow(struct sched_slice *slice, uint64_t now);
/* When it will. */
uint64_t caps_when(struct sched_slice *slice, uint64_t now);

/* passes.c: to slices whose work is late and may wait for what they may not submit. */
void passes_give(struct scheduler *scheduler, uint64_t now);

/*
 * holder.c: about the lease's holder, as far as known: how long the GPU will still run what others
 * had in flight before the lease; how long it has run the holder's work in flight, and when that
 * should have ended; what the holder has used and is about to use; what of it is done.
 */
uint64_t holder_behind(const struct scheduler *scheduler, uint64_t now);
uint64_t holder_elapsed(const struct scheduler *scheduler, uint64_t now);
uint64_t holder_expected_end(const struct scheduler *scheduler, uint64_t now);
uint64_t holder_spent(const struct scheduler *scheduler, uint64_t now);
double holder_executed(const struct scheduler *scheduler, uint64_t now);
/* Whether the GPU has had others' work at some time after @since, by their statements. */
bool holder_others_ran(const struct scheduler *scheduler, uint64_t since);
/* Others' work from before the lease has ended, as far as seen. */
void holder_note_others_end(struct scheduler *scheduler, uint64_t now);
/*
 * The lease ends: others are charged for the time for which its holder counted as behind their
 * work.
 */
void holder_settle(struct scheduler *scheduler, uint64_t now);
/* When the submission ends that uses the lease up. */
uint64_t holder_last_end(const struct scheduler *scheduler, uint64_t now);
/*
 * When others' work in flight should have ended, for the next holder; 0: they have none. Records
 * what each of them claims.
 */
uint64_t holder_others_end(struct scheduler *scheduler, const struct sched_slice *slice,
                           uint64_t now);

/* gather.c: what @slice's members do together, into its sample, as one that had all their work. */
void slice_gather(struct sched_slice *slice);

/* account.c: @member has used @ns of the GPU. */
void account_charge(struct scheduler *scheduler, struct sched_member *member, uint64_t ns);
/* The same, minus what was charged in advance. */
void account_use(struct scheduler *scheduler, struct sched_member *member, uint64_t ns);
/* What it reports to have used since the last look; charges and returns what that cost. */
uint64_t account_look(struct scheduler *scheduler, struct sched_member *member, uint64_t said_ns,
                      uint64_t now);

/*
 * @slice may use the engine @from some time on, and may have work on it @until some time, which may
 * be to come.
 */
void account_turn(struct sched_slice *slice, uint64_t from, uint64_t until);

/*
 * stalls.c: before the members are looked at: what all of them had on the GPU at the last look.
 * Then: whether the work of @member, which was looked at, has stalled. One that waits for its
 * turn beside work that has comes to its lease as if it had not said so.
 */
void stalls_prepare(struct scheduler *scheduler);
void stalls_look(struct scheduler *scheduler, struct sched_member *member, uint64_t now);
void stalls_forget_waiting(struct sched_member *member);

/* crowd.c: which of @slice's members go. Returns how much a queue of each may have on the GPU. */
uint64_t crowd_choose(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now);

/*
 * rest.c: members of @slice that are idle go to rest; those of a part of it that have done
 * something come back; one that was heard does; all do.
 */
void rest_begin(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now);
void rest_look(struct scheduler *scheduler, struct sched_slice *slice, uint64_t now);
void rest_end(struct sched_member *member);
void rest_end_all(struct sched_slice *slice);

/* lease.c */
void lease_run(struct scheduler *scheduler, uint64_t now);
void lease_end(struct scheduler *scheduler, uint64_t now);
/* Until when @member need not report that it waits; 0: it has to. */
uint64_t lease_looks_at(const struct scheduler *scheduler, const struct sched_member *member);

/*
 * choice.c: the next slice by priority and fairness, except @except; NULL: nobody that may go
 * waits.
 */
struct sched_slice *choice_best(struct scheduler *scheduler, const struct sched_slice *except,
                                uint64_t now);
/* The same for a lower class, if its minimum is due. */
struct sched_slice *choice_floor(struct scheduler *scheduler, uint64_t now);

/* modes.c: who is free. */
void modes_update(struct scheduler *scheduler, uint64_t now);

/* publish.c: the words of the grants. */
void publish_grants(struct scheduler *scheduler, uint64_t now);

/* contend.c: how many slices have work, or had some a moment ago. */
guint contend_active(const struct scheduler *scheduler);
/*
 * Whether others have work that @slice must share the GPU with; a higher class takes what it wants.
 */
bool contend_has_rivals(const struct scheduler *scheduler, const struct sched_slice *slice);
/* Whether @slice still counts as having work @at a time since the last look. */
bool contend_is_active(const struct sched_slice *slice, uint64_t at);
/* For how long after its work it does. */
uint64_t contend_idle_after(const struct sched_slice *slice);
/* Whether there is a member of a higher class. */
bool contend_outranked(const struct scheduler *scheduler, const struct sched_slice *slice);

/* tempo.c: all that have work have had it for a while. */
bool tempo_is_steady(const struct scheduler *scheduler, uint64_t now);
/* How long a lease is under contention. */
uint64_t tempo_quantum(const struct scheduler *scheduler, uint64_t now);

#endif
