/* SPDX-License-Identifier: MIT */
/* What the scheduler knows of an engine class, its slices and their members. */
#ifndef GOVERNOR_SCHEDULER_STATE_H
#define GOVERNOR_SCHEDULER_STATE_H

#include "budget.h"
#include "coverage.h"
#include "handover.h"
#include "sample.h"
#include "settings.h"
#include "think.h"
#include "timeline.h"

#define PRIORITIES (SETTINGS_PRIORITY_MAX + 1)

struct sched_slice;

/**
 * struct sched_member
 * @usage, @came_at, @expects_at, @grant, @preempts: owned by the caller; words of the same names of
 * struct governor_usage and struct governor_grant, NULL: there are none
 * @changed: the grant changed; the caller publishes it and resets this
 * @says_stalled: it says that its work in flight waits for something other than the GPU, since
 * @stalled_at, when it had made @stalled_count submissions and used @stalled_gpu_ns; @stalled: and
 * that is believed, see stalls.c
 * @paid_until: time before this is charged, and is not believed again; @unpaid_ns: reported, and
 * not charged yet
 * @charged_ns: in all; @advance_ns: the part that it has not used yet, see holder_settle()
 * @claim_ns: its work in flight when another's lease began; @claim_base: @charged_ns at that time
 * @behind_until: when others' work from before its last lease should have ended, or when it joined
 * @spans: how many of its spans were read, @last_span: the last one; @coverage: when it ran, by
 * those
 * @covered_ns: of its reported time, what its spans have been charged for already; @joined_at: no
 * span of it begins earlier
 * @moved_at: when it was last seen to do something; @rests: see rest.c
 * @goes: it may use its slice's lease, see crowd.c; @goes_since: when its turn within that began;
 * @went_ns: its turns in earlier leases, since it was behind all others
 * @silent: did not react within the grace time, and is ignored until it sends something
 * @missed_at: when it should have reacted; 0: it has, since. @missed_lease: by a submission. @soon:
 * how often in a row it did so not much later
 * @away: its memory is not on the card, so it does not wait for a lease; set by the caller
 * @held_until: its threads were held up a while ago (stopped, or beyond the processor time of their
 * cgroup), and may be again: until then the GPU is not kept for it
 */
struct sched_member {
    struct sched_slice *slice;
    const struct governor_class_usage *usage;
    const _Atomic uint64_t *came_at;
    const _Atomic uint64_t *expects_at;
    struct governor_class_grant *grant;
    _Atomic uint32_t *preempts;
    struct sample sample;
    bool changed;
    bool says_stalled;
    bool stalled;
    bool silent;
    bool goes;
    bool rests;
    bool away;
    uint64_t goes_since;
    uint64_t went_ns;
    uint64_t moved_at;
    uint64_t spans;
    uint64_t covered_ns;
    uint64_t joined_at;
    uint64_t stalled_at;
    uint64_t stalled_count;
    uint64_t stalled_gpu_ns;
    uint64_t missed_at;
    bool missed_lease;
    unsigned soon;
    uint64_t held_until;
    uint64_t paid_until;
    uint64_t unpaid_ns;
    uint64_t charged_ns;
    uint64_t advance_ns;
    uint64_t claim_ns;
    uint64_t claim_base;
    uint64_t behind_until;
    struct coverage coverage;
    struct coverage_span last_span;
};

/**
 * struct sched_slice
 * @members: of struct sched_member, those that looks come to, in the order of their turns;
 * @resting: the others, of which
 * @rest_looks were looked at
 * @virtual_ns: finish tag: GPU time by weight
 * @weight: by which its time is divided; @promised_part: of the GPU, if it is that for a promise,
 * see promises.c
 * @cap: applies if @capped
 * @throttled: the cap is used up, and not yet refilled by a slot
 * @active: has work, or had some a moment ago (@busy_at)
 * @sample: its members together at the last look, without work that is stalled and members that
 * are silent; gpu_ns is what they counted
 * @wanting, @in_flight_ns: waits for a lease; its work in flight, by the estimate or by the time
 * that it has taken already
 * @expected_until: until when its work is expected to follow what it does now; 0: it is not
 * @queues: the next submission is there before the end of the previous one, as far as seen
 * @batch_ns: mean length of the last submissions: @recent_ns by @recent_count
 * @paid_ns: about the longest work that was charged at once
 * @gpu_ns, @submissions, @waited_ns, @throttled_ns: of all members, past ones included
 * @returned_ns: given back, because others used the same time; the next @gpu_ns is less by it
 * @number: tells slices apart in the timeline
 * @handover: from its lease to its work
 * @served_at: when it had its last lease
 * @pass_at: no pass before, see passes.c; @passes: how often, while its work was late; @passed: the
 * member that had the last one
 * @asks_partners: it waits, and has partners on other GPUs. @partner_since: the caller's answer, on
 * which it calls scheduler_run(): since when work of theirs is in flight; 0: none is
 * @crowded: some member that waits may not go
 * @turns: when it had a lease, a pass or was free, and work from then; @alone: when its processes
 * ran without
 * @missed: leases in a row that ended before it reacted; @reaction_ns: how long that then took
 */
struct sched_slice {
    struct slice_settings settings;
    GPtrArray *members;
    GPtrArray *resting;
    guint rest_looks;
    double virtual_ns;
    double weight;
    double promised_part;
    struct budget cap;
    bool capped;
    bool throttled;
    bool active;
    bool wanting;
    bool queues;
    struct sample sample;
    uint64_t busy_at;
    uint64_t expected_until;
    uint64_t in_flight_ns;
    struct think think;
    struct handover handover;
    double batch_ns;
    double recent_ns;
    double recent_count;
    double paid_ns;
    uint64_t gpu_ns;
    double returned_ns;
    uint32_t number;
    uint64_t submissions;
    uint64_t waited_ns;
    uint64_t throttled_ns;
    uint64_t served_at;
    uint64_t pass_at;
    guint passes;
    guint passed;
    bool asks_partners;
    uint64_t partner_since;
    unsigned missed;
    uint64_t reaction_ns;
    bool crowded;
    struct coverage turns;
    struct coverage alone;
};

enum lease_state {
    LEASE_NONE,
    LEASE_OPEN,     /* the holder may submit */
    LEASE_KEPT,     /* the holder has nothing to do, but is expected to have work at once */
    LEASE_DRAINING, /* used up; waits for the holder's work in flight */
};

/**
 * struct lease
 * @limit_ns: of the holder's sample: what it may have used; its members' grants follow from it
 * @quantum_ns: how much of it the holder may use if others wait
 * @lead_ns: how long before the end of others' work it may have been given
 * @told_at: when the holder was told, which may be of the lease before; @due_at: when it should
 * have been, if the arbiter had run at once
 * @others_until: when others' work from before it should have ended; 0: there was none
 * @expected: it was given before the holder had work; @kept_from: since when that was not charged
 * @begun: the holder has submitted under it; @seen: when the first of that began on the GPU is
 * known
 * @idle_at, @kept_until: LEASE_KEPT
 * @drained_from, @drained_until: LEASE_DRAINING, since when, and at the latest
 * @contested: others wait, since @contested_at, when @contested_base had been executed
 * @floor: for the minimum of lower classes: one submission; @floor_base: what its slice had spent
 * before
 * @looks_at: time of the next look, until which others' requests make no difference; 0: unknown
 */
struct lease {
    enum lease_state state;
    struct sched_slice *holder;
    uint64_t limit_ns;
    uint64_t granted_at;
    uint64_t quantum_ns;
    uint64_t lead_ns;
    uint64_t told_at;
    uint64_t due_at;
    uint64_t others_until;
    uint64_t kept_from;
    bool expected;
    bool begun;
    bool seen;
    uint64_t idle_at;
    uint64_t kept_until;
    uint64_t drained_from;
    uint64_t drained_until;
    bool contested;
    uint64_t contested_at;
    double contested_base;
    bool floor;
    double floor_base;
    uint64_t looks_at;
};

/**
 * struct stall_look - what all members had on the GPU at the last look, see stalls.c
 * @on_card: how many had something there
 * @until: when the last of them is done at the latest, which is that of @last; @until_beside_last:
 * the same of all others
 */
struct stall_look {
    guint on_card;
    uint64_t until;
    uint64_t until_beside_last;
    const struct sched_member *last;
};

/**
 * struct scheduler
 * @slices: of struct sched_slice
 * @virtual_ns: start tag of the last lease, in each class
 * @free: the slice whose members submit without limit, since @free_since; NULL: none
 * @ended_at: when the last work of any member ended
 * @paused_at: when somebody was last seen to return from a pause
 * @handover: of the GPU, from one slice to another
 * @timeline: who used the engines when; @slice_numbers: of the last slice
 * @floor: the guaranteed minimum of lower classes
 * @deadline: when to be called again
 * @late_ns: how much later than that it was called this time
 * @looked: members that looks have come to, in all
 * @stalls: for this look
 */
struct scheduler {
    enum gpu_policy policy;
    GPtrArray *slices;
    double virtual_ns[PRIORITIES];
    struct sched_slice *free;
    uint64_t free_since;
    struct lease lease;
    uint64_t ended_at;
    uint64_t paused_at;
    struct gpu_handover handover;
    struct timeline timeline;
    uint32_t slice_numbers;
    struct budget floor;
    uint64_t deadline;
    uint64_t late_ns;
    uint64_t looked;
    struct stall_look stalls;
};

/* How many members it has. */
static inline guint slice_members(const struct sched_slice *slice)
{
    return slice->members->len + slice->resting->len;
}

#endif
