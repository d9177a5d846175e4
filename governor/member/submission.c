// SPDX-License-Identifier: MIT
#include "member_state.h"

#include <sys/param.h>

/*
 * A debit is its estimate, its queue, its class, and the number of stalls before it, modulo; an odd
 * number was deferred.
 */
#define DEFERRED     1ull
#define STALLS_SHIFT 1
#define STALLS_MASK  0xffu
#define CLASS_SHIFT  9
#define CLASS_MASK   3u
#define QUEUE_SHIFT  11
#define QUEUE_MASK   (LANE_QUEUES - 1u)
#define NS_SHIFT     15
/* More is not believed. */
#define MOST_NS (3600 * NS_PER_S)
/*
 * A batch is this part of what is left of the lease, within bounds; but not more than others may
 * wait for, unless that is so little that its events would be a part of the time.
 */
#define BATCH_PART     64
#define BATCH_LEAST_NS (500 * NS_PER_US)
#define BATCH_MOST_NS  (2 * NS_PER_MS)
#define BATCH_SHORT_NS (150 * NS_PER_US)
/* Spans with a smaller gap are one. */
#define SAME_SPAN_NS NS_PER_US

bool governor_member_class_is_metered(const GovernorMember *member, enum governor_class class)
{
    fork_check(member);
    return atomic_load_explicit(&member->grant->classes[class].mode, memory_order_relaxed) ==
           GOVERNOR_MODE_METERED;
}

void governor_member_class_count(GovernorMember *member, enum governor_class class)
{
    fork_check(member);
    atomic_fetch_add_explicit(&member->usage->classes[class].submissions, 1, memory_order_relaxed);
}

static void publish_word(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

static struct lane *lane_of(GovernorMember *member, uint64_t debit)
{
    return &member->lanes[debit >> CLASS_SHIFT & CLASS_MASK];
}

static struct lane_queue *queue_of(struct lane *lane, uint64_t debit)
{
    return &lane->queues[debit >> QUEUE_SHIFT & QUEUE_MASK];
}

static uint64_t ns_of(uint64_t debit)
{
    return debit >> NS_SHIFT;
}

static bool from_before_stall(const struct lane *lane, uint64_t debit)
{
    return (debit >> STALLS_SHIFT & STALLS_MASK) != (lane->stalls & STALLS_MASK);
}

static void add_in_flight(struct lane *lane, struct lane_queue *queue, uint64_t ns, uint64_t now)
{
    /* Nothing is in flight that has not stalled. */
    if (lane->in_flight == lane->stalled) {
        lane->began_at_ns = now;
        publish_word(&lane->usage->began_at_ns, now);
    }
    lane->in_flight++;
    if (!queue->in_flight++)
        queue->runs_since_ns = now;
    queue->in_flight_ns += ns;
    lane->in_flight_ns += ns;
    publish_word(&lane->usage->in_flight_ns, lane->in_flight_ns);
}

static void add_deferred(struct lane *lane, uint64_t ns)
{
    lane->deferred++;
    lane->deferred_ns += ns;
}

/* It stalled, and now continues or is given up. */
static void take_stalled(struct lane *lane, struct lane_queue *queue, uint64_t ns)
{
    if (!queue->stalled)
        return;
    lane->stalled--;
    queue->stalled--;
    queue->stalled_ns -= MIN(ns, queue->stalled_ns);
    if (!queue->stalled)
        queue->stalled_ns = 0;
}

/* Deferred work that begins, ends without that, or is given up. A child has none of its parent's.
 */
static void take_deferred(struct lane *lane, uint64_t ns)
{
    if (!lane->deferred)
        return;
    lane->deferred_ns -= MIN(ns, lane->deferred_ns);
    if (!--lane->deferred)
        lane->deferred_ns = 0;
}

/* What is in flight, for the arbiter. */
enum rest { REST_RUNS, REST_STALLED, REST_NONE };

/*
 * What is in flight without it. A child may end what its parent began, and has no debit for it.
 */
static enum rest take_in_flight(struct lane *lane, uint64_t debit)
{
    struct lane_queue *queue = queue_of(lane, debit);
    uint64_t ns = ns_of(debit);

    if (debit & DEFERRED)
        take_deferred(lane, ns);
    if ((debit & DEFERRED) || !queue->in_flight)
        return REST_RUNS;
    if (from_before_stall(lane, debit))
        take_stalled(lane, queue, ns);
    lane->in_flight--;
    lane->in_flight_ns -= MIN(ns, lane->in_flight_ns);
    queue->in_flight--;
    queue->in_flight_ns -= MIN(ns, queue->in_flight_ns);
    if (!queue->in_flight) {
        lane->stalled -= queue->stalled;
        queue->in_flight_ns = queue->stalled_ns = queue->stalled = 0;
    }
    if (!lane->in_flight)
        lane->in_flight_ns = 0;
    publish_word(&lane->usage->in_flight_ns, lane->in_flight_ns);
    if (lane->in_flight > lane->stalled)
        return REST_RUNS;
    /* What was late has ended. */
    lane->passes_seen = atomic_load_explicit(&lane->grant->passes, memory_order_relaxed);
    return lane->in_flight ? REST_STALLED : REST_NONE;
}

/* Nothing is on the GPU any more, and others wait for that. */
static void tell_rest(GovernorMember *member, const struct lane *lane, enum rest rest)
{
    if (rest && atomic_load_explicit(&lane->grant->contended, memory_order_relaxed))
        link_tell(member, rest == REST_NONE ? GOVERNOR_IDLE : GOVERNOR_STALLED, 0,
                  (uint64_t)(lane - member->lanes));
}

/*
 * A turn was waited for, and nothing is in flight for it. True if nothing else is: the lease need
 * not be kept.
 */
static bool pass_turn(struct lane *lane, uint64_t now)
{
    if (lane->in_flight)
        return false;
    publish_word(&lane->usage->began_at_ns, now);
    return true;
}

uint64_t governor_member_submit_work(GovernorMember *member, const struct governor_work *asked,
                                     struct governor_turn *turn)
{
    struct governor_work work = *asked;
    struct lane *lane = &member->lanes[work.class];
    struct governor_class_usage *usage = lane->usage;
    bool waited, idle = false, others_wait = false;
    uint64_t debit, now, throttled_ns, others_until;

    work.estimate_ns = MIN(MAX(work.estimate_ns, 1), MOST_NS);
    fork_check(member);
    if (work.class == GOVERNOR_CLASS_COPY)
        governor_member_expect(member, GOVERNOR_CLASS_COMPUTE);
    pthread_mutex_lock(&member->lock);
    now = member_now(member);
    if (!work.deferred && !lane->in_flight)
        silence_learn(&lane->silence, now - lane->ended_at_ns);
    throttled_ns = lane->throttled_ns;
    waited = turn_wait(member, lane, &work, &now);
    if (!work.deferred)
        add_in_flight(lane, &lane->queues[work.queue & QUEUE_MASK], work.estimate_ns, now);
    else
        add_deferred(lane, work.estimate_ns);
    if (work.deferred && waited)
        idle = pass_turn(lane, now);
    if (waited)
        others_wait = turn_taken(lane, &work);
    publish_word(&usage->waited_ns, lane->waited_ns);
    publish_word(&usage->throttled_ns, lane->throttled_ns);
    debit = work.estimate_ns << NS_SHIFT | (uint64_t)(work.queue & QUEUE_MASK) << QUEUE_SHIFT |
            (uint64_t)work.class << CLASS_SHIFT |
            (uint64_t)(lane->stalls & STALLS_MASK) << STALLS_SHIFT | (work.deferred ? DEFERRED : 0);
    others_until = atomic_load_explicit(&lane->grant->others_until_ns, memory_order_relaxed);
    if (turn)
        *turn = (struct governor_turn){.behind_ns = others_until > now ? others_until - now : 0,
                                       .passes = lane->passes,
                                       .waited_for_cap = lane->throttled_ns != throttled_ns};
    pthread_mutex_unlock(&member->lock);
    if (others_wait)
        turn_pass_on(lane);
    atomic_fetch_add_explicit(&usage->submissions, 1, memory_order_relaxed);
    if (idle)
        tell_rest(member, lane, REST_NONE);
    return debit;
}

uint32_t governor_member_passes(const GovernorMember *member, enum governor_class class)
{
    return atomic_load_explicit(&member->lanes[class].passes, memory_order_relaxed);
}

uint64_t governor_member_batch_ns(const GovernorMember *member, enum governor_class class)
{
    const struct governor_class_grant *grant = &member->grant->classes[class];
    uint64_t limit = atomic_load_explicit(&grant->limit_ns, memory_order_relaxed);
    uint64_t spent =
        atomic_load_explicit(&member->usage->classes[class].gpu_ns, memory_order_relaxed);
    uint64_t part = limit > spent ? (limit - spent) / BATCH_PART : 0;
    uint64_t depth = atomic_load_explicit(&grant->depth_ns, memory_order_relaxed);

    part = MIN(MAX(part, BATCH_LEAST_NS), BATCH_MOST_NS);
    return depth < BATCH_SHORT_NS ? BATCH_SHORT_NS : MIN(part, depth);
}

/* Under lock. Nothing is in flight: records whether the member continues by itself. */
static bool comes_back(struct lane *lane)
{
    return lane->gpu_ns < atomic_load_explicit(&lane->grant->limit_ns, memory_order_relaxed) &&
           silence_keep(&lane->silence);
}

/* Under lock. */
static void count_gpu(struct lane *lane, uint64_t ns)
{
    lane->gpu_ns += ns;
    budget_spend(&lane->budget, (double)ns);
    publish_word(&lane->usage->gpu_ns, lane->gpu_ns);
}

/* Under lock. What others are to be told of. */
static enum rest end_work(GovernorMember *member, struct lane *lane, uint64_t debit,
                          uint64_t measured)
{
    enum rest rest;

    lane->ended_at_ns = queue_of(lane, debit)->runs_since_ns = member_now(member);
    /* Stored before it is no longer in flight: a look in between sees it twice, not never. */
    count_gpu(lane, measured);
    publish_word(&lane->usage->ended_at_ns, lane->ended_at_ns);
    rest = take_in_flight(lane, debit);
    if (rest == REST_NONE && comes_back(lane))
        rest = REST_RUNS;
    turn_progress(member);
    return rest;
}

void governor_member_end(GovernorMember *member, uint64_t debit, uint64_t measured_ns)
{
    struct lane *lane = lane_of(member, debit);
    enum rest rest;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    rest = end_work(member, lane, debit, MIN(measured_ns, MOST_NS));
    pthread_mutex_unlock(&member->lock);
    tell_rest(member, lane, rest);
}

/* For the arbiter. A span that goes on where the last one ended is a part of it. */
static void write_span(struct lane *lane, uint64_t begin_at, uint64_t end_at)
{
    struct governor_class_usage *usage = lane->usage;
    struct governor_span *last = &usage->spans[(lane->spans - 1) % GOVERNOR_SPANS];

    if (lane->spans && end_at >= last->end_at_ns && begin_at >= last->begin_at_ns &&
        begin_at <= last->end_at_ns + SAME_SPAN_NS) {
        publish_word(&last->end_at_ns, end_at);
        return;
    }
    last = &usage->spans[lane->spans % GOVERNOR_SPANS];
    publish_word(&last->begin_at_ns, begin_at);
    publish_word(&last->end_at_ns, end_at);
    publish_word(&usage->span_count, ++lane->spans);
}

uint64_t governor_member_ran(GovernorMember *member, uint64_t debit, uint64_t begin_at_ns,
                             uint64_t end_at_ns)
{
    struct lane *lane = lane_of(member, debit);
    uint64_t offset, measured;
    enum rest rest;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    offset = (uint64_t)atomic_load_explicit(&member->clock_offset, memory_order_relaxed);
    measured = coverage_add(&lane->ran, begin_at_ns + offset, end_at_ns + offset, NULL, NULL);
    if (measured)
        write_span(lane, begin_at_ns + offset, end_at_ns + offset);
    rest = end_work(member, lane, debit, MIN(measured, MOST_NS));
    pthread_mutex_unlock(&member->lock);
    tell_rest(member, lane, rest);
    return measured;
}

void governor_member_also(GovernorMember *member, enum governor_class class, uint64_t ns)
{
    struct lane *lane = &member->lanes[class];

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    count_gpu(lane, MIN(ns, MOST_NS));
    pthread_mutex_unlock(&member->lock);
}

static void change_ns(uint64_t *sum, uint64_t from, uint64_t to)
{
    *sum -= MIN(from, *sum);
    *sum += to;
}

uint64_t governor_member_revise(GovernorMember *member, uint64_t debit, uint64_t estimate_ns)
{
    struct lane *lane = lane_of(member, debit);
    struct lane_queue *queue = queue_of(lane, debit);
    uint64_t from = ns_of(debit), to = MIN(MAX(estimate_ns, 1), MOST_NS);

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    if (debit & DEFERRED) {
        if (lane->deferred)
            change_ns(&lane->deferred_ns, from, to);
    } else if (queue->in_flight) {
        if (queue->stalled && from_before_stall(lane, debit))
            change_ns(&queue->stalled_ns, from, to);
        change_ns(&queue->in_flight_ns, from, to);
        change_ns(&lane->in_flight_ns, from, to);
        publish_word(&lane->usage->in_flight_ns, lane->in_flight_ns);
    }
    if (to < from)
        turn_progress(member);
    pthread_mutex_unlock(&member->lock);
    return (debit & ((1ull << NS_SHIFT) - 1)) | to << NS_SHIFT;
}

void governor_member_cancel(GovernorMember *member, uint64_t debit)
{
    struct lane *lane = lane_of(member, debit);
    enum rest rest;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    rest = take_in_flight(lane, debit);
    turn_progress(member);
    pthread_mutex_unlock(&member->lock);
    tell_rest(member, lane, rest);
}

uint64_t governor_member_begun(GovernorMember *member, uint64_t debit)
{
    struct lane *lane = lane_of(member, debit);
    struct lane_queue *queue = queue_of(lane, debit);
    uint64_t now;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    now = member_now(member);
    if (debit & DEFERRED) {
        take_deferred(lane, ns_of(debit));
        add_in_flight(lane, queue, ns_of(debit), now);
    } else if (from_before_stall(lane, debit)) {
        take_stalled(lane, queue, ns_of(debit));
    }
    /* It executes from now on. */
    lane->began_at_ns = queue->runs_since_ns = now;
    publish_word(&lane->usage->began_at_ns, lane->began_at_ns);
    debit &= ~(DEFERRED | (uint64_t)STALLS_MASK << STALLS_SHIFT);
    debit |= (uint64_t)(lane->stalls & STALLS_MASK) << STALLS_SHIFT;
    turn_progress(member);
    pthread_mutex_unlock(&member->lock);
    return debit;
}

/* Under lock. */
static void stall_lane(struct lane *lane)
{
    if (lane->in_flight == lane->stalled)
        return;
    for (unsigned i = 0; i < LANE_QUEUES; i++) {
        lane->queues[i].stalled = lane->queues[i].in_flight;
        lane->queues[i].stalled_ns = lane->queues[i].in_flight_ns;
    }
    lane->stalled = lane->in_flight;
    lane->stalls++;
}

void governor_member_class_stalled(GovernorMember *member, enum governor_class class)
{
    bool any;

    fork_check(member);
    pthread_mutex_lock(&member->lock);
    stall_lane(&member->lanes[class]);
    any = member->lanes[class].stalled > 0;
    turn_progress(member);
    pthread_mutex_unlock(&member->lock);
    /* Again and again: the arbiter may have lost it, or have taken other work for it. */
    if (any)
        link_tell(member, GOVERNOR_STALLED, 0, class);
}
