/* SPDX-License-Identifier: MIT */
/*
 * How a door's work becomes a number: the one place for the CUDA door and the Vulkan layer. A door
 * says when work is about to be submitted, what it saw of its begin, and when it ran. What overlaps
 * on several streams of the process is charged once, by the member.
 *
 * Not thread-safe: the door's own lock is over a struct lane_work.
 */
#ifndef GOVERNOR_LANE_H
#define GOVERNOR_LANE_H

#include "clock.h"
#include "member.h"

/**
 * struct lane_work - work with one debit: a batch of launches, or a submission
 * @estimate_ns: how long it should take; a batch may grow
 * @submitted_at: before it was submitted, by CLOCK_MONOTONIC
 * @behind_ns: how long others' work was before it then
 * @passes: of the member then, see governor_member_passes()
 * @waited_for_cap: it had to wait for the slice's hard cap, so nothing of it was on the GPU
 * @deferred: it waits for something that was not signalled when it was submitted
 * @begun: the GPU was seen to have come to it
 * @unbegun: the member was told that it waits, and not yet that it has begun
 * @stuck: it has not begun for so long that what comes after it must not wait for it
 * @told_ns: how long it had waited when the member was last told; 0: never
 */
struct lane_work {
    enum governor_class class;
    uint64_t debit;
    uint64_t estimate_ns;
    uint64_t submitted_at;
    uint64_t behind_ns;
    uint32_t passes;
    bool waited_for_cap;
    bool deferred;
    bool begun;
    bool unbegun;
    bool stuck;
    uint64_t told_ns;
};

/*
 * Waits for the turn of what is @asked, and debits it. It is to be submitted at once, or its debit
 * cancelled.
 */
void lane_begin(GovernorMember *member, struct lane_work *work, const struct governor_work *asked);

/*
 * How much of @ns, the time until @end by the host's clock, was its own: not before others' work
 * had ended, but no less than it should take.
 */
uint64_t lane_own(const struct lane_work *work, uint64_t ns, uint64_t end);

/*
 * Whether its length says how long such work takes. Not if it was late and may have waited for what
 * had a pass.
 */
bool lane_teaches(GovernorMember *member, const struct lane_work *work);

/*
 * It has ended, and took @ns until @end_at; 0: it is not known when. Returns what is charged: the
 * part that no other work of the process had at the same time.
 */
uint64_t lane_end(GovernorMember *member, const struct lane_work *work, uint64_t ns,
                  uint64_t end_at);

/* stall.c */

/* The oldest work of a stream is looked at so often while it has not begun. */
#define LANE_LOOK_NS (1 * NS_PER_MS)
/* It has stalled if it has not begun after this time: its stream waits for something. */
#define LANE_STALLED_NS (3 * NS_PER_MS)

/*
 * @work is the oldest of its stream, and has not begun after @waited_ns. @beside: other work of the
 * process runs. True: governor_member_class_stalled() is to be called, best without the door's
 * lock.
 */
bool lane_waits(struct lane_work *work, uint64_t waited_ns, bool beside);

/* It executes: what is behind it is not held up by it any more. */
void lane_begun(GovernorMember *member, struct lane_work *work);

#endif
