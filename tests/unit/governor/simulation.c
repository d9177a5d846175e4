// SPDX-License-Identifier: MIT
#include "simulation.h"

#include <stdlib.h>
#include <string.h>

#define MESSAGE_NS (30 * NS_PER_US)
#define WAKE_NS    (50 * NS_PER_US)
#define EXEC_NS    (500 * NS_PER_US)
/* How often the layer's thread looks whether work that waits has begun. */
#define BEGUN_NS NS_PER_MS
#define START_NS NS_PER_S
/* As turn.c of the member: whoever has waited for so long, twice as long each time, reports again.
 */
#define LOOK_AGAIN_NS      (20 * NS_PER_MS)
#define LOOK_AGAIN_MOST_NS (160 * NS_PER_MS)

static void begin_job(void *data, struct card_job *job);
static void end_job(void *data, struct card_job *job);

void sim_set_card(struct simulation *sim, enum card_kind kind)
{
    card_init(&sim->card, kind, begin_job, end_job, sim);
}

void sim_init(struct simulation *sim, enum gpu_policy policy)
{
    memset(sim, 0, sizeof(*sim));
    sim_set_card(sim, CARD_IN_ORDER);
    sim->now = START_NS;
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        sim->calls_at[i] = TIME_NEVER;
    sim->random = 88172645463325252ull;
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        scheduler_init(&sim->schedulers[i], sim->now);
        sim->schedulers[i].policy = policy;
    }
}

static struct scheduler *scheduler_of(struct simulation *sim, const struct sim_tenant *tenant)
{
    return &sim->schedulers[tenant->class];
}

void sim_clear(struct simulation *sim)
{
    for (unsigned i = 0; i < sim->count; i++)
        scheduler_remove_member(scheduler_of(sim, &sim->tenants[i]), &sim->tenants[i].member,
                                sim->now);
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        struct scheduler *scheduler = &sim->schedulers[i];

        while (scheduler->slices->len)
            scheduler_remove_slice(scheduler, g_ptr_array_index(scheduler->slices, 0));
        scheduler_clear(scheduler);
    }
}

struct simulation *sim_new(enum gpu_policy policy, enum card_kind kind)
{
    struct simulation *sim = g_new(struct simulation, 1);

    sim_init(sim, policy);
    sim_set_card(sim, kind);
    return sim;
}

void sim_free(struct simulation *sim)
{
    sim_clear(sim);
    g_free(sim);
}

struct sim_tenant *sim_add(struct simulation *sim, uint32_t weight, uint64_t batch_ns)
{
    struct sim_tenant *tenant = &sim->tenants[sim->count++];

    g_assert_cmpuint(sim->count, <=, SIM_MAX);
    tenant->settings = (struct slice_settings){.weight = weight};
    tenant->wake_ns = WAKE_NS;
    tenant->batch_ns = batch_ns;
    tenant->queues = 1;
    backlog_init(&tenant->backlog);
    tenant->ahead = 2;
    tenant->sees_at = tenant->speaks_at = tenant->begun_at = TIME_NEVER;
    tenant->next_at = sim->now;
    tenant->slice = scheduler_add_slice(&sim->scheduler, &tenant->settings);
    tenant->member.grant = &tenant->grant;
    tenant->member.usage = &tenant->usage;
    tenant->member.came_at = &tenant->came_at;
    tenant->member.expects_at = &tenant->expects_at;
    tenant->member.preempts = &tenant->preempts;
    scheduler_add_member(tenant->slice, &tenant->member, sim->now);
    return tenant;
}

void sim_join(struct simulation *sim, struct sim_tenant *tenant, const struct sim_tenant *other)
{
    struct scheduler *scheduler = scheduler_of(sim, tenant);

    scheduler_remove_member(scheduler, &tenant->member, sim->now);
    scheduler_remove_slice(scheduler, tenant->slice);
    tenant->slice = other->slice;
    scheduler_add_member(tenant->slice, &tenant->member, sim->now);
}

void sim_set_class(struct simulation *sim, struct sim_tenant *tenant, enum governor_class class)
{
    scheduler_remove_member(scheduler_of(sim, tenant), &tenant->member, sim->now);
    scheduler_remove_slice(scheduler_of(sim, tenant), tenant->slice);
    tenant->class = class;
    tenant->slice = scheduler_add_slice(scheduler_of(sim, tenant), &tenant->settings);
    scheduler_add_member(tenant->slice, &tenant->member, sim->now);
}

static void wake_at(struct sim_tenant *tenant, uint64_t at)
{
    tenant->rests_until = MIN(tenant->rests_until, at);
}

static void schedule(struct simulation *sim, unsigned class)
{
    sim->looks += class == GOVERNOR_CLASS_COMPUTE;
    sim->calls_at[class] = scheduler_run(&sim->schedulers[class], sim->now);
    for (unsigned i = 0; i < sim->count; i++) {
        struct sim_tenant *tenant = &sim->tenants[i];

        if (tenant->member.changed && tenant->sees_at == TIME_NEVER)
            wake_at(tenant, tenant->sees_at = sim->now + tenant->wake_ns);
        tenant->member.changed = false;
        if (tenant->grant.limit_ns > tenant->last_limit)
            wake_at(tenant, 0);
        tenant->last_limit = tenant->grant.limit_ns;
    }
}

static void speak(struct simulation *sim, struct sim_tenant *tenant)
{
    if (tenant->speaks_at == TIME_NEVER)
        wake_at(tenant, tenant->speaks_at = sim->now + MESSAGE_NS);
}

static uint64_t random_below(struct simulation *sim, uint64_t limit)
{
    sim->random ^= sim->random << 13;
    sim->random ^= sim->random >> 7;
    sim->random ^= sim->random << 17;
    return limit ? sim->random % limit : 0;
}

static bool works(const struct simulation *sim, const struct sim_tenant *tenant)
{
    uint64_t at = sim->now - START_NS;

    return !tenant->stopped && at >= tenant->start_ns &&
           (!tenant->stop_ns || at < tenant->stop_ns || tenant->wants_since);
}

/* A waiting member is woken when it is raised; a lowered value is seen at once. */
static uint64_t limit_of(const struct sim_tenant *tenant)
{
    return MIN(tenant->seen_limit, tenant->grant.limit_ns);
}

static bool lease_used_up(const struct simulation *sim, const struct sim_tenant *tenant)
{
    uint64_t since = MAX(tenant->usage.began_at_ns, tenant->usage.ended_at_ns);
    uint64_t elapsed = tenant->in_flight ? sim->now - since : 0;

    return tenant->usage.gpu_ns + MAX(tenant->usage.in_flight_ns, elapsed) >= limit_of(tenant);
}

static bool is_free(const struct sim_tenant *tenant)
{
    return tenant->tracked && tenant->seen_mode == GOVERNOR_MODE_FREE && !tenant->ungoverned;
}

/* As marker.c of the member: it waits where a marker is due. */
static bool is_too_far(const struct simulation *sim, const struct sim_tenant *tenant)
{
    uint64_t count = tenant->usage.free_submissions;

    return is_free(tenant) && count + 1 >= tenant->backlog.due &&
           backlog_is_full(&tenant->backlog, count, tenant->grant.backlog_ns, sim->now);
}

static void publish_backlog(struct sim_tenant *tenant)
{
    tenant->usage.free_done = tenant->backlog.done;
    tenant->usage.free_mean_ns = tenant->backlog.mean_ns;
    tenant->usage.free_since_ns = backlog_since(&tenant->backlog);
}

/* The number of the marker behind this submission; 0: none. */
static uint64_t track(struct simulation *sim, struct sim_tenant *tenant)
{
    uint64_t number = ++tenant->usage.free_submissions;

    if (number < tenant->backlog.due ||
        !backlog_place(&tenant->backlog, number, 0, tenant->grant.backlog_ns, sim->now))
        return 0;
    publish_backlog(tenant);
    return number;
}

/* Work in flight may wait for a submission on a queue that has none, as far as its member knows. */
static bool has_pass(const struct sim_tenant *tenant, const struct sim_queue *queue)
{
    return tenant->usage.waiting && tenant->seen_passes != tenant->used_passes && !queue->in_flight;
}

/* As turn.c of the member. */
static bool has_turn(const struct simulation *sim, const struct sim_tenant *tenant,
                     const struct sim_queue *queue)
{
    uint64_t since = MAX(queue->began_at_ns, queue->ended_at_ns);
    uint64_t elapsed = queue->in_flight ? sim->now - since : 0;

    if (tenant->seen_mode == GOVERNOR_MODE_FREE || tenant->ungoverned)
        return queue->in_flight < tenant->ahead && !is_too_far(sim, tenant);
    if (lease_used_up(sim, tenant))
        return has_pass(tenant, queue);
    if (queue->in_flight_ns > elapsed + tenant->grant.depth_ns)
        return false;
    return queue->in_flight < 2 ||
           elapsed <= queue->in_flight_ns / queue->in_flight + 500 * NS_PER_US;
}

/* The number of a queue that may have more; -1: none. */
static int queue_with_turn(const struct simulation *sim, const struct sim_tenant *tenant)
{
    for (unsigned i = 0; i < tenant->queues; i++) {
        unsigned queue = (tenant->submitted + i) % tenant->queues;

        if (has_turn(sim, tenant, &tenant->queue[queue]))
            return (int)queue;
    }
    return -1;
}

/* As governor_member_batch_ns(), filled with whole kernels. */
static uint64_t length_of_batch(const struct sim_tenant *tenant)
{
    uint64_t limit = tenant->grant.limit_ns, spent = tenant->usage.gpu_ns;
    uint64_t part = limit > spent ? (limit - spent) / 64 : 0;
    uint64_t most = MIN(CLAMP(part, 500 * NS_PER_US, 2 * NS_PER_MS), tenant->grant.depth_ns);

    most = MAX(most, 150 * NS_PER_US);
    return (most + tenant->kernel_ns - 1) / tenant->kernel_ns * tenant->kernel_ns;
}

static void submit(struct simulation *sim, struct sim_tenant *tenant, unsigned queue)
{
    struct sim_job *job = &tenant->jobs[tenant->submitted++ % G_N_ELEMENTS(tenant->jobs)];
    uint64_t length = tenant->kernel_ns ? length_of_batch(tenant) : tenant->batch_ns;
    uint64_t work_ns =
        length - tenant->batch_jitter_ns + random_below(sim, 2 * tenant->batch_jitter_ns);
    uint64_t ramp_ns = tenant->usage.waiting && !tenant->in_flight ? tenant->ramp_ns : 0;
    struct card_job on_card = {
        .owner = job,
        .length_ns = work_ns + tenant->event_ns + ramp_ns,
    };

    *job = (struct sim_job){
        .work_ns = work_ns,
        .ramps = ramp_ns > 0,
        .tenant = tenant,
        .life = tenant->life,
        .queue = queue,
        .free = is_free(tenant),
        .debit_ns = tenant->estimate_ns ? tenant->estimate_ns : length,
        .since = tenant->wants_since,
    };
    card_submit(&sim->card, (enum card_engine)tenant->class, (unsigned)(tenant - sim->tenants),
                queue, &on_card);
    if (job->free) {
        job->debit_ns = 0;
        job->marker = track(sim, tenant);
    }
    if (!tenant->in_flight++ && !job->free)
        tenant->usage.began_at_ns = sim->now;
    if (!tenant->queue[queue].in_flight++)
        tenant->queue[queue].began_at_ns = sim->now;
    tenant->queue[queue].in_flight_ns += job->debit_ns;
    tenant->usage.in_flight_ns += job->debit_ns;
    tenant->usage.submissions += !job->free;
    if (tenant->usage.waiting && lease_used_up(sim, tenant))
        tenant->used_passes = tenant->seen_passes;
    else if (tenant->usage.waiting)
        tenant->came_at = sim->now;
    tenant->usage.waiting = 0;
    tenant->wants_since = 0;
    tenant->told = false;
    if (tenant->stalls) {
        scheduler_stalled(&tenant->member, sim->now);
        speak(sim, tenant);
    }
    tenant->burst_done++;
    tenant->next_at = tenant->async ? sim->now : TIME_NEVER;
    if (tenant->burst && tenant->burst_done % tenant->burst == 0 && tenant->async)
        tenant->next_at =
            START_NS + tenant->start_ns + tenant->burst_done / tenant->burst * tenant->period_ns;
}

/* As governor_member_expect(). */
static void expect(struct simulation *sim, struct sim_tenant *tenant)
{
    if (!tenant->hints || !tenant->preempts)
        return;
    tenant->expects_at = sim->now;
    speak(sim, tenant);
}

static bool has_idle_queue(const struct sim_tenant *tenant)
{
    for (unsigned i = 0; i < tenant->queues; i++) {
        if (!tenant->queue[i].in_flight)
            return true;
    }
    return false;
}

static void wait_for_lease(struct simulation *sim, struct sim_tenant *tenant)
{
    if (!tenant->usage.waiting) {
        tenant->usage.waiting_at_ns = sim->now;
        tenant->used_passes = tenant->seen_passes = tenant->grant.passes;
        tenant->look_again_ns = LOOK_AGAIN_NS;
    } else if (tenant->told && sim->now >= tenant->looks_again_at) {
        tenant->look_again_ns = MIN(2 * tenant->look_again_ns, LOOK_AGAIN_MOST_NS);
        tenant->told = false;
    }
    tenant->usage.waiting = 1 | (uint64_t)has_idle_queue(tenant) << GOVERNOR_BESIDE_SHIFT;
    if (tenant->told)
        return;
    tenant->told = true;
    tenant->looks_again_at = sim->now + tenant->look_again_ns;
    if (tenant->grant.looks_at_ns <= sim->now)
        speak(sim, tenant);
}

/* Returns until when there is nothing to do for it, if nothing happens. */
static uint64_t act(struct simulation *sim, struct sim_tenant *tenant)
{
    int queue;

    if (!works(sim, tenant))
        return 0;
    if (sim->now < tenant->next_at)
        return tenant->next_at;
    if (!tenant->wants_since) {
        tenant->wants_since = sim->now;
        if (!tenant->in_flight)
            silence_learn(&tenant->silence, sim->now - tenant->usage.ended_at_ns);
        expect(sim, tenant);
    }
    if (sim->now < tenant->wants_since + tenant->copy_ns)
        return tenant->wants_since + tenant->copy_ns;
    queue = queue_with_turn(sim, tenant);
    if (queue >= 0) {
        submit(sim, tenant, (unsigned)queue);
        return 0;
    }
    if (tenant->seen_mode != GOVERNOR_MODE_METERED || !lease_used_up(sim, tenant))
        return 0;
    wait_for_lease(sim, tenant);
    return tenant->in_flight ? 0 : tenant->looks_again_at;
}

/* As submission.c of the member. */
static bool comes_back(struct sim_tenant *tenant)
{
    return tenant->usage.gpu_ns < limit_of(tenant) && silence_keep(&tenant->silence);
}

/* Whoever joins finds on its page what holds for it. */
void sim_exit(struct simulation *sim, struct sim_tenant *tenant)
{
    struct scheduler *scheduler = scheduler_of(sim, tenant);

    scheduler_remove_member(scheduler, &tenant->member, sim->now);
    schedule(sim, tenant->class);
    memset(&tenant->queue, 0, sizeof(tenant->queue));
    backlog_init(&tenant->backlog);
    memset(&tenant->usage, 0, sizeof(tenant->usage));
    memset(&tenant->grant, 0, sizeof(tenant->grant));
    tenant->member = (struct sched_member){.grant = &tenant->grant,
                                           .preempts = &tenant->preempts,
                                           .usage = &tenant->usage,
                                           .came_at = &tenant->came_at,
                                           .expects_at = &tenant->expects_at};
    tenant->silence = (struct silence){0};
    tenant->sees_at = tenant->speaks_at = tenant->begun_at = TIME_NEVER;
    tenant->wants_since = tenant->in_flight = 0;
    tenant->told = false;
    tenant->life++;
    tenant->next_at = sim->now + EXEC_NS + tenant->think_ns;
    scheduler_add_member(tenant->slice, &tenant->member, sim->now);
    schedule(sim, tenant->class);
    tenant->seen_limit = tenant->grant.limit_ns;
    tenant->seen_mode = tenant->grant.mode;
    tenant->seen_passes = tenant->grant.passes;
}

/*
 * As governor_member_ran(). On a card that works in order, doors measure what work took for itself,
 * and know no spans.
 */
static uint64_t measure(struct simulation *sim, struct sim_tenant *tenant,
                        const struct card_job *job)
{
    const struct sim_job *of = job->owner;
    uint64_t begin_at = job->began_at;
    struct governor_span *span;

    if (of->ramps && tenant->charges_sum)
        begin_at = MAX(begin_at, job->ended_at - of->debit_ns);
    if (!sim->card.model.kind.slice_ns)
        return job->length_ns;
    span = &tenant->usage.spans[tenant->usage.span_count % GOVERNOR_SPANS];
    span->begin_at_ns = begin_at;
    span->end_at_ns = job->ended_at;
    tenant->usage.span_count++;
    return coverage_add(&tenant->ran, begin_at, job->ended_at, NULL, NULL);
}

static bool is_held_up(const struct simulation *sim, const struct sim_tenant *tenant)
{
    uint64_t at = sim->now - START_NS;

    return tenant->rests_ns && at % (tenant->runs_ns + tenant->rests_ns) >= tenant->runs_ns;
}

static void report_end(struct simulation *sim, const struct card_job *on_card);

/* It sees what has ended while it was held up. */
static void catch_up(struct simulation *sim, struct sim_tenant *tenant)
{
    for (unsigned i = 0; i < tenant->missed_count; i++)
        report_end(sim, &tenant->missed[i]);
    tenant->missed_count = 0;
    /* Its wait for a wake-up is over: it tells the arbiter again. */
    if (tenant->was_held_up)
        tenant->told = false;
    tenant->was_held_up = false;
}

static void end_job(void *data, struct card_job *on_card)
{
    struct simulation *sim = data;
    const struct sim_job *job = on_card->owner;
    struct sim_tenant *tenant = job->tenant;

    wake_at(tenant, 0);
    if (tenant->done < SIM_TOOK)
        tenant->took_us[tenant->done] = (uint32_t)((sim->now - job->since) / NS_PER_US);
    tenant->done++;
    tenant->done_ns += job->work_ns;
    tenant->worst_ns = MAX(tenant->worst_ns, sim->now - job->since);
    sim->busy_ns += job->work_ns;
    if (is_held_up(sim, tenant)) {
        g_assert_cmpuint(tenant->missed_count, <, SIM_MISSED);
        tenant->missed[tenant->missed_count++] = *on_card;
        return;
    }
    report_end(sim, on_card);
}

static void report_end(struct simulation *sim, const struct card_job *on_card)
{
    const struct sim_job *job = on_card->owner;
    struct sim_tenant *tenant = job->tenant;
    uint64_t think = tenant->think_ns + random_below(sim, tenant->think_jitter_ns);

    if (tenant->stopped || job->life != tenant->life)
        return;
    if (tenant->exits_unsaid) {
        sim_exit(sim, tenant);
        return;
    }
    tenant->begun_at = TIME_NEVER;
    if (job->marker) {
        backlog_pass(&tenant->backlog, job->marker, sim->now);
        publish_backlog(tenant);
    }
    if (!job->free)
        tenant->usage.gpu_ns += measure(sim, tenant, on_card);
    tenant->usage.ended_at_ns = tenant->queue[job->queue].ended_at_ns = sim->now;
    tenant->usage.in_flight_ns -= job->debit_ns;
    tenant->queue[job->queue].in_flight_ns -= job->debit_ns;
    tenant->queue[job->queue].in_flight--;
    tenant->begun -= job->begun;
    if (tenant->in_flight == 1)
        tenant->used_passes = tenant->seen_passes = tenant->grant.passes;
    if (!--tenant->in_flight && !comes_back(tenant) && tenant->grant.contended)
        speak(sim, tenant);
    if (!tenant->async)
        tenant->next_at = sim->now + think;
    if (tenant->burst && !tenant->async && tenant->burst_done % tenant->burst == 0)
        tenant->next_at = MAX(sim->now, START_NS + tenant->start_ns +
                                            tenant->burst_done / tenant->burst * tenant->period_ns);
    if (tenant->exits_ns && tenant->usage.gpu_ns >= tenant->exits_ns && !tenant->in_flight)
        sim_exit(sim, tenant);
}

static void begin_job(void *data, struct card_job *on_card)
{
    struct simulation *sim = data;
    struct sim_job *job = on_card->owner;

    if (job->life == job->tenant->life && !job->begun) {
        job->begun = true;
        job->tenant->begun++;
    }
    if ((job->tenant->stalls || job->tenant->stall_told_ns) && job->life == job->tenant->life)
        wake_at(job->tenant, job->tenant->begun_at = sim->now + BEGUN_NS);
}

/* As waiter.c of the layer, which sees that what had stalled has begun. */
static void see_begun(struct simulation *sim, struct sim_tenant *tenant)
{
    if (sim->now < tenant->begun_at)
        return;
    tenant->begun_at = TIME_NEVER;
    tenant->usage.began_at_ns = sim->now;
}

#define STALLED_NS (3 * NS_PER_MS)
#define STUCK_NS   (20 * NS_PER_MS)

/* As the doors' ladders, which cannot know that others' work is before theirs. Returns when next.
 */
static uint64_t say_stalled(struct simulation *sim, struct sim_tenant *tenant)
{
    uint64_t since = MAX(tenant->usage.began_at_ns, tenant->usage.ended_at_ns), due;

    if (!tenant->says_stalled || !tenant->in_flight || tenant->begun) {
        tenant->stall_told_ns = 0;
        return TIME_NEVER;
    }
    due = since + tenant->stall_told_ns + (tenant->stall_told_ns ? STUCK_NS : STALLED_NS);
    if (sim->now < due)
        return due;
    tenant->stall_told_ns = sim->now - since;
    scheduler_stalled(&tenant->member, sim->now);
    speak(sim, tenant);
    return sim->now + STUCK_NS;
}

static void see(struct simulation *sim, struct sim_tenant *tenant)
{
    if (sim->now < tenant->sees_at)
        return;
    tenant->sees_at = TIME_NEVER;
    tenant->seen_limit = tenant->grant.limit_ns;
    tenant->seen_mode = tenant->grant.mode;
    tenant->seen_passes = tenant->grant.passes;
    tenant->told = false;
}

static void sim_step(struct simulation *sim, struct sim_tenant *tenant)
{
    uint64_t until;

    tenant->was_held_up |= is_held_up(sim, tenant);
    if (is_held_up(sim, tenant))
        return;
    tenant->rests_until = TIME_NEVER;
    catch_up(sim, tenant);
    see(sim, tenant);
    see_begun(sim, tenant);
    until = act(sim, tenant);
    until = MIN(until, say_stalled(sim, tenant));
    wake_at(tenant, tenant->rests_ns ? 0 : until);
    if (sim->now >= tenant->speaks_at) {
        tenant->speaks_at = TIME_NEVER;
        scheduler_heard(&tenant->member);
        schedule(sim, tenant->class);
    }
    wake_at(tenant, MIN(MIN(tenant->sees_at, tenant->speaks_at), tenant->begun_at));
}

void sim_run(struct simulation *sim, uint64_t ns)
{
    uint64_t until = sim->now + ns;

    /* The test may have changed anything. */
    for (unsigned i = 0; i < sim->count; i++)
        sim->tenants[i].rests_until = 0;
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        schedule(sim, i);
    for (; sim->now < until; sim->now += SIM_STEP_NS) {
        card_run(&sim->card, sim->now, SIM_STEP_NS);
        for (unsigned i = 0; i < sim->count; i++) {
            if (sim->now >= sim->tenants[i].rests_until)
                sim_step(sim, &sim->tenants[i]);
        }
        for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
            if (sim->now >= sim->calls_at[i])
                schedule(sim, i);
        }
    }
}

static int compare_took(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;

    return (one > two) - (one < two);
}

void sim_reset_counts(struct simulation *sim)
{
    sim->busy_ns = 0;
    sim->looks = 0;
    for (unsigned i = 0; i < sim->count; i++) {
        sim->tenants[i].done = 0;
        sim->tenants[i].done_ns = 0;
        sim->tenants[i].worst_ns = 0;
    }
}

double sim_took_ns(const struct sim_tenant *tenant, double part)
{
    unsigned count = (unsigned)MIN(tenant->done, SIM_TOOK);
    uint32_t *took;
    double us;

    g_assert_cmpuint(count, >, 0);
    took = g_memdup2(tenant->took_us, count * sizeof(*took));
    qsort(took, count, sizeof(*took), compare_took);
    us = took[(unsigned)(part * (count - 1) + 0.5)];
    g_free(took);
    return us * NS_PER_US;
}

double sim_share(const struct simulation *sim, const struct sim_tenant *tenant)
{
    return sim->busy_ns ? (double)tenant->done_ns / (double)sim->busy_ns : 0;
}
