// SPDX-License-Identifier: MIT
#include "simulation.h"

#include <string.h>

#define MESSAGE_NS (30 * NS_PER_US)
#define WAKE_NS    (50 * NS_PER_US)
#define EXEC_NS    (500 * NS_PER_US)
/* How often the layer's thread looks whether work that waits has begun. */
#define BEGUN_NS NS_PER_MS
#define START_NS   NS_PER_S

void sim_init(struct simulation *sim, enum gpu_policy policy)
{
    memset(sim, 0, sizeof(*sim));
    sim->now = START_NS;
    sim->call_at = TIME_NEVER;
    sim->random = 88172645463325252ull;
    scheduler_init(&sim->scheduler, sim->now);
    sim->scheduler.policy = policy;
}

void sim_clear(struct simulation *sim)
{
    for (unsigned i = 0; i < sim->count; i++)
        scheduler_remove_member(&sim->scheduler, &sim->tenants[i].member, sim->now);
    while (sim->scheduler.slices->len)
        scheduler_remove_slice(&sim->scheduler, g_ptr_array_index(sim->scheduler.slices, 0));
    scheduler_clear(&sim->scheduler);
}

struct sim_tenant *sim_add(struct simulation *sim, uint32_t weight, uint64_t batch_ns)
{
    struct sim_tenant *tenant = &sim->tenants[sim->count++];

    g_assert_cmpuint(sim->count, <=, SIM_MAX);
    tenant->settings = (struct slice_settings){.weight = weight};
    tenant->wake_ns = WAKE_NS;
    tenant->batch_ns = batch_ns;
    tenant->sees_at = tenant->speaks_at = tenant->begun_at = TIME_NEVER;
    tenant->next_at = sim->now;
    tenant->slice = scheduler_add_slice(&sim->scheduler, &tenant->settings);
    tenant->member.grant = &tenant->grant;
    tenant->member.usage = &tenant->usage;
    scheduler_add_member(&sim->scheduler, tenant->slice, &tenant->member, sim->now);
    return tenant;
}

void sim_join(struct simulation *sim, struct sim_tenant *tenant, const struct sim_tenant *other)
{
    scheduler_remove_member(&sim->scheduler, &tenant->member, sim->now);
    scheduler_remove_slice(&sim->scheduler, tenant->slice);
    tenant->slice = other->slice;
    scheduler_add_member(&sim->scheduler, tenant->slice, &tenant->member, sim->now);
}

static void schedule(struct simulation *sim)
{
    sim->looks++;
    sim->call_at = scheduler_run(&sim->scheduler, sim->now);
    for (unsigned i = 0; i < sim->count; i++) {
        struct sim_tenant *tenant = &sim->tenants[i];

        if (tenant->member.changed && tenant->sees_at == TIME_NEVER)
            tenant->sees_at = sim->now + tenant->wake_ns;
        tenant->member.changed = false;
    }
}

static void speak(struct simulation *sim, struct sim_tenant *tenant)
{
    if (tenant->speaks_at == TIME_NEVER)
        tenant->speaks_at = sim->now + MESSAGE_NS;
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

/* As turn.c of the member. */
static bool has_turn(const struct simulation *sim, const struct sim_tenant *tenant)
{
    uint64_t since = MAX(tenant->usage.began_at_ns, tenant->usage.ended_at_ns);
    uint64_t elapsed = tenant->in_flight ? sim->now - since : 0;
    uint64_t in_flight = tenant->usage.in_flight_ns;

    if (tenant->seen_mode == GOVERNOR_MODE_FREE)
        return tenant->in_flight < 2;
    if (tenant->usage.gpu_ns + MAX(in_flight, elapsed) >= limit_of(tenant))
        return false;
    if (in_flight > elapsed + tenant->grant.depth_ns)
        return false;
    return tenant->in_flight < 2 || elapsed <= in_flight / tenant->in_flight + 500 * NS_PER_US;
}

static bool lease_used_up(const struct simulation *sim, const struct sim_tenant *tenant)
{
    uint64_t since = MAX(tenant->usage.began_at_ns, tenant->usage.ended_at_ns);
    uint64_t elapsed = tenant->in_flight ? sim->now - since : 0;

    return tenant->usage.gpu_ns + MAX(tenant->usage.in_flight_ns, elapsed) >= limit_of(tenant);
}

static void submit(struct simulation *sim, struct sim_tenant *tenant)
{
    struct sim_job *job = &sim->queue[sim->tail++ % SIM_QUEUE_MAX];

    g_assert_cmpuint(sim->tail - sim->head, <, SIM_QUEUE_MAX);
    *job = (struct sim_job){
        .tenant = tenant,
        .life = tenant->life,
        .length_ns = tenant->batch_ns - tenant->batch_jitter_ns +
                     random_below(sim, 2 * tenant->batch_jitter_ns),
        .debit_ns = tenant->estimate_ns ? tenant->estimate_ns : tenant->batch_ns,
        .since = tenant->wants_since,
    };
    if (!tenant->in_flight++)
        tenant->usage.began_at_ns = sim->now;
    tenant->usage.in_flight_ns += job->debit_ns;
    tenant->usage.submissions++;
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

static void act(struct simulation *sim, struct sim_tenant *tenant)
{
    if (!works(sim, tenant) || sim->now < tenant->next_at)
        return;
    if (!tenant->wants_since) {
        tenant->wants_since = sim->now;
        if (!tenant->in_flight)
            silence_learn(&tenant->silence, sim->now - tenant->usage.ended_at_ns);
    }
    if (has_turn(sim, tenant)) {
        submit(sim, tenant);
        return;
    }
    if (tenant->seen_mode == GOVERNOR_MODE_METERED && lease_used_up(sim, tenant) && !tenant->told) {
        if (!tenant->usage.waiting)
            tenant->usage.waiting_at_ns = sim->now;
        tenant->usage.waiting = 1;
        tenant->told = true;
        if (tenant->grant.looks_at_ns <= sim->now)
            speak(sim, tenant);
    }
}

/* As submission.c of the member. */
static bool comes_back(struct sim_tenant *tenant)
{
    return tenant->usage.gpu_ns < limit_of(tenant) && silence_keep(&tenant->silence);
}

/* Whoever joins finds on its page what holds for it. */
void sim_exit(struct simulation *sim, struct sim_tenant *tenant)
{
    scheduler_remove_member(&sim->scheduler, &tenant->member, sim->now);
    schedule(sim);
    memset(&tenant->usage, 0, sizeof(tenant->usage));
    memset(&tenant->grant, 0, sizeof(tenant->grant));
    tenant->member = (struct sched_member){.grant = &tenant->grant, .usage = &tenant->usage};
    tenant->silence = (struct silence){0};
    tenant->sees_at = tenant->speaks_at = tenant->begun_at = TIME_NEVER;
    tenant->wants_since = tenant->in_flight = 0;
    tenant->told = false;
    tenant->life++;
    tenant->next_at = sim->now + EXEC_NS + tenant->think_ns;
    scheduler_add_member(&sim->scheduler, tenant->slice, &tenant->member, sim->now);
    schedule(sim);
    tenant->seen_limit = tenant->grant.limit_ns;
    tenant->seen_mode = tenant->grant.mode;
}

static void end_job(struct simulation *sim, const struct sim_job *job)
{
    struct sim_tenant *tenant = job->tenant;
    uint64_t think = tenant->think_ns + random_below(sim, tenant->think_jitter_ns);

    tenant->done++;
    tenant->done_ns += job->length_ns;
    tenant->worst_ns = MAX(tenant->worst_ns, sim->now - job->since);
    sim->busy_ns += job->length_ns;
    if (tenant->stopped || job->life != tenant->life)
        return;
    if (tenant->exits_unsaid) {
        sim_exit(sim, tenant);
        return;
    }
    tenant->begun_at = TIME_NEVER;
    tenant->usage.gpu_ns += job->length_ns;
    tenant->usage.ended_at_ns = sim->now;
    tenant->usage.in_flight_ns -= job->debit_ns;
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

static void begin_job(struct simulation *sim, const struct sim_job *job)
{
    sim->job_ends = sim->now + job->length_ns;
    if (job->tenant->stalls && job->life == job->tenant->life)
        job->tenant->begun_at = sim->now + BEGUN_NS;
}

static void run_gpu(struct simulation *sim)
{
    if (sim->head != sim->tail && sim->job_ends && sim->now >= sim->job_ends) {
        end_job(sim, &sim->queue[sim->head++ % SIM_QUEUE_MAX]);
        sim->job_ends = 0;
    }
    if (sim->head != sim->tail && !sim->job_ends)
        begin_job(sim, &sim->queue[sim->head % SIM_QUEUE_MAX]);
}

/* As waiter.c of the layer, which sees that what had stalled has begun. */
static void see_begun(struct simulation *sim, struct sim_tenant *tenant)
{
    if (sim->now < tenant->begun_at)
        return;
    tenant->begun_at = TIME_NEVER;
    tenant->usage.began_at_ns = sim->now;
}

static void see(struct simulation *sim, struct sim_tenant *tenant)
{
    if (sim->now < tenant->sees_at)
        return;
    tenant->sees_at = TIME_NEVER;
    tenant->seen_limit = tenant->grant.limit_ns;
    tenant->seen_mode = tenant->grant.mode;
    tenant->told = false;
}

void sim_run(struct simulation *sim, uint64_t ns)
{
    uint64_t until = sim->now + ns;

    schedule(sim);
    for (; sim->now < until; sim->now += SIM_STEP_NS) {
        run_gpu(sim);
        for (unsigned i = 0; i < sim->count; i++) {
            struct sim_tenant *tenant = &sim->tenants[i];

            see(sim, tenant);
            see_begun(sim, tenant);
            act(sim, tenant);
            if (sim->now >= tenant->speaks_at) {
                tenant->speaks_at = TIME_NEVER;
                scheduler_heard(&tenant->member);
                schedule(sim);
            }
        }
        if (sim->now >= sim->call_at)
            schedule(sim);
    }
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

double sim_share(const struct simulation *sim, const struct sim_tenant *tenant)
{
    return sim->busy_ns ? (double)tenant->done_ns / (double)sim->busy_ns : 0;
}
