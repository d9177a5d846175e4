// SPDX-License-Identifier: MIT
/*
 * Tenants that exit early, kill their own work, or lie, in simulated time. Their gain is measured
 * by the GPU's work for them, beside a neighbour that follows the rules.
 */
#include "simulation.h"

#define BATCH (2 * NS_PER_MS)

/* How a slice's processes try to be charged less than they use. */
typedef struct {
    const char *name;
    uint64_t batch_ns;
    uint64_t estimate_ns;
    uint64_t exits_ns;
    bool exits_unsaid;
    bool stalls;
    uint64_t rest_ns;
} Evasion;

static const Evasion evasions[] = {
    /* Ended and reported, but after the last look. */
    {"short-programs", NS_PER_MS, 0, 3 * NS_PER_MS, false, false, 0},
    {"one-submission", 3 * NS_PER_MS, 0, 1, false, false, 0},
    /* Not long enough to owe much, and then away until others are alone. */
    {"rested", 3 * NS_PER_MS, 0, 12 * NS_PER_MS, false, false, 11 * NS_PER_MS},
    /* Killed when the result is there, with the estimate of a new command buffer. */
    {"killed", 20 * NS_PER_MS, 100 * NS_PER_US, 0, true, false, 0},
    {"killed-long", 500 * NS_PER_MS, 100 * NS_PER_US, 0, true, false, 0},
    /* Until others are alone, and not measured. */
    {"killed-rested", 500 * NS_PER_MS, 100 * NS_PER_US, 0, true, false, 20 * NS_PER_MS},
    /* The same, behind a semaphore that is signalled as soon as it is reported as stalled. */
    {"killed-stalled", 20 * NS_PER_MS, 100 * NS_PER_US, 0, true, true, 0},
};

static struct sim_tenant *add_evader(struct simulation *sim, const Evasion *evasion)
{
    struct sim_tenant *evader = sim_add(sim, 20, evasion->batch_ns);

    evader->estimate_ns = evasion->estimate_ns;
    evader->exits_ns = evasion->exits_ns;
    evader->exits_unsaid = evasion->exits_unsaid;
    evader->stalls = evasion->stalls;
    evader->think_ns = evasion->rest_ns;
    return evader;
}

/* Beside a tenant that always wants the GPU it gets its share of the work, which is a fifth. */
static void test_share(const void *data)
{
    const Evasion *evasion = data;
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *evader = add_evader(sim, evasion);
    struct sim_tenant *other = sim_add(sim, 80, BATCH);

    other->async = true;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 30 * NS_PER_S);
    g_test_message("gain %.1f %%: %.4f of the GPU, %d submissions, charged %.3f s of %.3f s",
                   100 * (sim_share(sim, evader) / 0.2 - 1), sim_share(sim, evader),
                   (int)evader->done, (double)evader->slice->gpu_ns / 1e9,
                   (double)evader->done_ns / 1e9);
    g_assert_cmpuint(evader->done, >, 5);
    g_assert_cmpfloat(sim_share(sim, evader), >, 0.1);
    g_assert_cmpfloat(sim_share(sim, evader), <, 1.03 * 0.2);
    sim_free(sim);
}

static void check_cap(struct simulation *sim, struct sim_tenant *evader)
{
    double part;

    evader->slice->settings.cap = 20;
    evader->slice->settings.hard = true;
    sim_run(sim, 11 * NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 60 * NS_PER_S);
    part = (double)evader->done_ns / (60.0 * NS_PER_S);
    g_test_message("gain %.1f %%: %.4f of the time, %d submissions", 100 * (part / 0.2 - 1), part,
                   (int)evader->done);
    g_assert_cmpuint(evader->done, >, 5);
    g_assert_cmpfloat(part, <, 1.03 * 0.2);
}

/* Nor has it more than its hard cap, with nobody beside it. */
static void test_cap(const void *data)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);

    check_cap(sim, add_evader(sim, data));
    sim_free(sim);
}

/* Of what the card has spent, changes between processes included. */
static double cost_share(const struct simulation *sim, const struct sim_tenant *tenant)
{
    const struct model_engine_state *engine = &sim->card.model.engines[CARD_COMPUTE];
    uint64_t sum = 0;

    for (unsigned i = 0; i < sim->count; i++)
        sum += engine->cost_ns[i];
    return (double)engine->cost_ns[tenant - sim->tenants] / (double)sum;
}

/*
 * On a card that divides its time, nor if its work always takes longer than it says. Its queues
 * overlap there, so it does more in its time.
 */
static void test_late_share(void)
{
    for (unsigned queues = 1; queues <= 2; queues++) {
        const Evasion late = {.batch_ns = 50 * NS_PER_MS, .estimate_ns = NS_PER_MS};
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
        struct sim_tenant *evader = add_evader(sim, &late);
        struct sim_tenant *other = sim_add(sim, 80, BATCH);

        sim_set_card(sim, CARD_SLICED);
        evader->queues = queues;
        evader->async = other->async = true;
        sim_run(sim, NS_PER_S);
        sim_reset_counts(sim);
        sim_run(sim, 10 * NS_PER_S);
        g_test_message("%u queues: %.4f of the GPU, %.4f of the work", queues,
                       cost_share(sim, evader), sim_share(sim, evader));
        g_assert_cmpfloat(cost_share(sim, evader), >, 0.1);
        g_assert_cmpfloat(cost_share(sim, evader), <, 1.03 * 0.2);
        sim_free(sim);
    }
}

/*
 * Nor has it more than its cap if its work always takes longer than it says, so that what its other
 * queue has may be what the work waits for.
 */
static void test_late_cap(void)
{
    static const uint64_t lengths[] = {50 * NS_PER_MS, 500 * NS_PER_MS};

    for (gsize i = 0; i < G_N_ELEMENTS(lengths); i++) {
        const Evasion late = {.batch_ns = lengths[i], .estimate_ns = NS_PER_MS};
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
        struct sim_tenant *evader = add_evader(sim, &late);

        evader->queues = 2;
        evader->async = true;
        check_cap(sim, evader);
        sim_free(sim);
    }
}

/* A debt is to those of the same class. It keeps them metered until it is paid, and no others. */
static void test_debt(void)
{
    for (unsigned above = 0; above < 2; above++) {
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
        struct sim_tenant *evader = sim_add(sim, 50, 500 * NS_PER_MS);
        struct sim_tenant *other = sim_add(sim, 50, BATCH);

        other->async = true;
        other->slice->settings.priority = above ? 8 : 0;
        evader->estimate_ns = 100 * NS_PER_US;
        evader->exits_unsaid = true;
        sim_run(sim, NS_PER_S);
        while (!evader->in_flight)
            sim_run(sim, NS_PER_MS);
        evader->think_ns = 3600 * NS_PER_S;
        while (evader->in_flight)
            sim_run(sim, NS_PER_MS);
        sim_run(sim, 100 * NS_PER_MS);
        g_assert_cmpint(other->grant.mode, ==, above ? GOVERNOR_MODE_FREE : GOVERNOR_MODE_METERED);
        sim_run(sim, NS_PER_S);
        g_assert_cmpint(other->grant.mode, ==, GOVERNOR_MODE_FREE);
        sim_free(sim);
    }
}

/* Claims of GPU time, in each millisecond of @ns. */
static void lie(struct simulation *sim, struct sim_tenant *liar, uint64_t ns, uint64_t claim_ns)
{
    liar->stopped = true;
    for (uint64_t i = 0; i < ns; i += NS_PER_MS) {
        bool holds = liar->grant.limit_ns > 0;

        liar->usage.gpu_ns += claim_ns;
        liar->usage.submissions += holds;
        if (holds)
            liar->usage.began_at_ns = liar->usage.ended_at_ns = sim->now;
        liar->usage.waiting = !holds;
        scheduler_heard(&liar->member);
        sim_run(sim, NS_PER_MS);
    }
}

/*
 * One that pauses for a few ms now and then, and one that returns now and then for a little work.
 */
static void add_two(struct simulation *sim, struct sim_tenant **busy, struct sim_tenant **visitor)
{
    *busy = sim_add(sim, 100, BATCH);
    (*busy)->async = true;
    (*busy)->burst = 780;
    (*busy)->period_ns = 1600 * NS_PER_MS;
    *visitor = sim_add(sim, 100, NS_PER_MS);
    (*visitor)->burst = 1;
    (*visitor)->period_ns = 53 * NS_PER_MS;
}

static double visits(struct simulation *sim, struct sim_tenant *visitor)
{
    double wanted = 10.0 * NS_PER_S / (double)visitor->period_ns;

    g_test_message("%d visits of %.0f, the worst took %.1f ms", (int)visitor->done, wanted,
                   (double)visitor->worst_ns / 1e6);
    (void)sim;
    return (double)visitor->done / wanted;
}

/* A third slice of the lowest weight claims hours of use, and gets a lease in the pauses of the
 * first. That must not move the clock by which the visitor comes back. */
static void test_poison(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *liar = sim_add(sim, 1, BATCH), *busy, *visitor;

    add_two(sim, &busy, &visitor);
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    lie(sim, liar, 10 * NS_PER_S, 3600 * NS_PER_S);
    g_assert_cmpfloat(visits(sim, visitor), >, 0.95);
    g_assert_cmpuint(visitor->worst_ns, <, 30 * NS_PER_MS);
    sim_free(sim);
}

/* Whatever the member claims, its slice's account has no more than the time that has passed. */
static void test_claims(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *liar = sim_add(sim, 50, BATCH), *other = sim_add(sim, 50, BATCH);

    other->async = true;
    sim_run(sim, NS_PER_S);
    lie(sim, liar, 2 * NS_PER_S, 3600 * NS_PER_S);
    g_test_message("%.3f s", (double)liar->slice->gpu_ns / 1e9);
    g_assert_cmpuint(liar->slice->gpu_ns, >, NS_PER_S);
    g_assert_cmpuint(liar->slice->gpu_ns, <=, 3 * NS_PER_S);
    sim_free(sim);
}

/* How long the visitor waits at most beside submissions that are long for their slice's weight. */
static uint64_t worst_visit(unsigned burst)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *light = sim_add(sim, 1, 60 * NS_PER_MS), *busy, *visitor;
    uint64_t worst;

    light->async = true;
    add_two(sim, &busy, &visitor);
    busy->burst = burst;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 10 * NS_PER_S);
    g_assert_cmpfloat(visits(sim, visitor), >, 0.95);
    worst = visitor->worst_ns;
    sim_free(sim);
    return worst;
}

/*
 * The same without a lie: submissions that are long for the slice's weight move its virtual time as
 * far. The visitor waits for two of them at most, which that slice had queued while it was alone,
 * whenever that is. It comes back from idle, and from pauses too short for that.
 */
static void test_light(void)
{
    for (unsigned burst = 700; burst < 790; burst += 5)
        g_assert_cmpuint(worst_visit(burst), <, 125 * NS_PER_MS);
}

/* A slice that does next to nothing, but never pauses long enough to be idle, must not save up what
 * others use meanwhile. Long submissions of a third slice of low weight let it do so. */
static void test_saved_up(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *light = sim_add(sim, 1, 200 * NS_PER_MS);
    struct sim_tenant *saver = sim_add(sim, 100, SIM_STEP_NS), *other = sim_add(sim, 100, BATCH);

    light->async = other->async = true;
    saver->think_ns = 8 * NS_PER_MS;
    sim_run(sim, 20 * NS_PER_S);
    saver->think_ns = 0;
    saver->batch_ns = BATCH;
    saver->async = true;
    sim_reset_counts(sim);
    sim_run(sim, 10 * NS_PER_S);
    g_test_message("%.3f of the GPU, the other %.3f", sim_share(sim, saver), sim_share(sim, other));
    g_assert_cmpfloat(sim_share(sim, other), >, 0.38);
    sim_free(sim);
}

/* For how long in 10 s @member could take its own work for others', because @other's was before it.
 */
static uint64_t behind_ns(struct simulation *sim, const struct sim_tenant *tenant)
{
    const uint64_t step = 50 * NS_PER_US;
    uint64_t behind = 0;

    for (uint64_t i = 0; i < 10 * NS_PER_S; i += step) {
        sim_run(sim, step);
        if (sim->scheduler.lease.holder == tenant->slice)
            behind += tenant->grant.others_until_ns > sim->now ? step : 0;
    }
    return behind;
}

static struct sim_tenant *add_online(struct simulation *sim)
{
    struct sim_tenant *online = sim_add(sim, 100, 5 * NS_PER_MS);

    online->slice->settings.priority = 8;
    online->burst = 1;
    online->period_ns = 13 * NS_PER_MS + 7 * NS_PER_US;
    return online;
}

/*
 * An accomplice reports that its work is before another's, which is charged less for it. The
 * accomplice is charged what the other is not.
 */
static void test_accomplice(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *online = add_online(sim), *liar = sim_add(sim, 100, BATCH);
    uint64_t behind;

    liar->stopped = true;
    liar->usage.in_flight_ns = UINT64_MAX;
    liar->usage.began_at_ns = liar->usage.ended_at_ns = UINT64_MAX;
    behind = behind_ns(sim, online);
    g_test_message("behind for %.3f s, the accomplice is charged %.3f s", (double)behind / 1e9,
                   (double)liar->slice->gpu_ns / 1e9);
    g_assert_cmpuint(behind, >, NS_PER_S);
    g_assert_cmpuint(liar->slice->gpu_ns, >, behind - behind / 20);
    sim_free(sim);
}

/* If its work really is there, it is charged for that, and not twice. */
static void test_no_accomplice(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *online = add_online(sim), *offline = sim_add(sim, 100, 3 * BATCH);
    uint64_t behind;

    offline->async = true;
    offline->batch_jitter_ns = BATCH;
    behind = behind_ns(sim, online);
    g_test_message("behind for %.3f s, the other is charged %.3f s for %.3f s",
                   (double)behind / 1e9, (double)offline->slice->gpu_ns / 1e9,
                   (double)offline->done_ns / 1e9);
    g_assert_cmpuint(behind, >, NS_PER_S / 10);
    g_assert_cmpuint(offline->slice->gpu_ns, <, offline->done_ns + 50 * NS_PER_MS);
    sim_free(sim);
}

#define LIARS 7

/*
 * Of each ms in which the first tenant has had a lease, all is claimed by each of @liars, none of
 * which has ever run. With @in_flight_ns, they ask for leases as well, and say in each that so much
 * is in flight.
 */
static void claim_spans(struct simulation *sim, struct sim_tenant *liars[], uint64_t in_flight_ns,
                        uint64_t ns)
{
    for (uint64_t i = 0; i < ns; i += NS_PER_MS) {
        sim_run(sim, NS_PER_MS);
        for (unsigned j = 0; j < LIARS; j++) {
            struct governor_class_usage *usage = &liars[j]->usage;
            struct governor_span *span = &usage->spans[usage->span_count % GOVERNOR_SPANS];
            bool holds = liars[j]->grant.limit_ns > 0;

            span->begin_at_ns = sim->now - NS_PER_MS;
            span->end_at_ns = sim->now;
            usage->span_count += sim->scheduler.lease.holder == sim->tenants[0].slice;
            usage->waiting = in_flight_ns && !holds;
            usage->submissions += holds;
            usage->in_flight_ns = holds ? in_flight_ns : 0;
            usage->began_at_ns = sim->now;
            scheduler_heard(&liars[j]->member);
        }
    }
}

/* What @sim's first tenant gets done in 10 s beside liars of another slice of the same owner. */
static double beside_liars(struct simulation *sim, bool lie, uint64_t in_flight_ns)
{
    struct sim_tenant *liars[LIARS];

    for (unsigned i = 0; i < LIARS; i++) {
        liars[i] = sim_add(sim, 100, BATCH);
        liars[i]->stopped = true;
        if (i)
            sim_join(sim, liars[i], liars[0]);
    }
    for (unsigned i = 0; i < 11; i++) {
        if (i == 1)
            sim_reset_counts(sim);
        if (lie)
            claim_spans(sim, liars, in_flight_ns, NS_PER_S);
        else
            sim_run(sim, NS_PER_S);
    }
    return (double)sim->tenants[0].done_ns / (10.0 * NS_PER_S);
}

static struct simulation *new_helped(unsigned cap, unsigned priority, bool rival)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *helped = sim_add(sim, 100, BATCH);

    helped->async = true;
    helped->slice->settings.cap = cap;
    helped->slice->settings.hard = cap > 0;
    helped->slice->settings.priority = priority;
    if (rival)
        sim_add(sim, 100, BATCH)->async = true;
    return sim;
}

/*
 * Seven connections of another slice say that they ran while this one did. Otherwise that would
 * have eight times its weight, and a cap would be none.
 */
static void test_span_liars(void)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned cap = i % 2 ? 20 : 0, priority = i / 2 ? 8 : 0;
        struct simulation *honest = new_helped(cap, priority, true);
        struct simulation *helped = new_helped(cap, priority, true);
        double before = beside_liars(honest, false, 0);
        double after = beside_liars(helped, true, 0);

        g_test_message(
            "cap %u, priority %u: %.4f of the GPU, without accomplices %.4f: gain %.1f %%", cap,
            priority, after, before, 100 * (after / before - 1));
        g_assert_cmpfloat(after, <, 1.03 * before);
        sim_free(honest);
        sim_free(helped);
    }
}

/*
 * They may give away the turns that they have, and no more: both together do no more than their
 * weights allow, and nobody else does less.
 */
static void test_turn_liars(void)
{
    for (unsigned cap = 0; cap <= 20; cap += 20) {
        struct simulation *sim = new_helped(cap, 0, true);
        double helped = beside_liars(sim, true, 5 * NS_PER_MS);
        double other = (double)sim->tenants[1].done_ns / (10.0 * NS_PER_S);

        g_test_message("cap %u: %.4f of the GPU, the other %.4f", cap, helped, other);
        g_assert_cmpfloat(helped, <, 1.03 * (cap ? 0.2 : other));
        g_assert_cmpfloat(other, >, 0.33);
        sim_free(sim);
    }
}

/*
 * A slice that was preempted had a turn until its work ends, but not for as long as it likes to
 * say: otherwise each lease of a lower class that is lost at once would pay for 20 s.
 */
static void test_tail_liars(void)
{
    struct simulation *honest = new_helped(20, 8, true), *sim = new_helped(20, 8, true);
    double before = beside_liars(honest, false, 0);
    double after = beside_liars(sim, true, GOVERNOR_IN_FLIGHT_MOST_NS);

    g_test_message("%.4f of the GPU, without accomplices %.4f: gain %.1f %%", after, before,
                   100 * (after / before - 1));
    g_assert_cmpfloat(after, <, 1.03 * before);
    sim_free(honest);
    sim_free(sim);
}

static void claim(struct sim_tenant *tenant, uint64_t begin_at, uint64_t ns)
{
    struct governor_span *span = &tenant->usage.spans[tenant->usage.span_count % GOVERNOR_SPANS];

    span->begin_at_ns = begin_at;
    span->end_at_ns = tenant->usage.ended_at_ns = begin_at + ns;
    tenant->usage.gpu_ns += ns;
    tenant->usage.span_count++;
}

/*
 * Without a turn, it says of so many short times that it ran that what was before is forgotten. It
 * pays for work that it says of then, too.
 */
static void test_forgotten(void)
{
    struct simulation *sim = new_helped(0, 0, true);
    struct sim_tenant *liar = sim_add(sim, 100, BATCH);
    uint64_t before;

    liar->stopped = true;
    sim_run(sim, NS_PER_S);
    for (unsigned i = 0; i < 200; i++) {
        claim(liar, sim->now - 10 * NS_PER_US, NS_PER_US);
        scheduler_heard(&liar->member);
        sim_run(sim, 100 * NS_PER_US);
    }
    before = liar->slice->gpu_ns;
    claim(liar, sim->now - 500 * NS_PER_MS, 400 * NS_PER_MS);
    scheduler_heard(&liar->member);
    sim_run(sim, 100 * NS_PER_MS);
    g_test_message("charged %.3f s for 0.4", (double)(liar->slice->gpu_ns - before) / 1e9);
    g_assert_cmpuint(liar->slice->gpu_ns - before, >, 360 * NS_PER_MS);
    sim_free(sim);
}

/* Nor has a slice more because it has 64 processes, each of which always has work on the card. */
static void test_ranks(void)
{
    for (unsigned cap = 0; cap <= 20; cap += 20) {
        struct simulation *sim = new_helped(cap, 0, true);
        struct sim_tenant *first = &sim->tenants[0];
        const struct model_engine_state *engine = &sim->card.model.engines[CARD_COMPUTE];
        double allowed = cap ? 0.2 : 0.5, part, other;

        for (unsigned i = 1; i < 64; i++) {
            struct sim_tenant *rank = sim_add(sim, 100, BATCH);

            rank->async = true;
            sim_join(sim, rank, first);
        }
        for (unsigned i = 0; i < sim->count; i++)
            sim->tenants[i].start_ns = NS_PER_MS;
        sim_run(sim, 2 * NS_PER_S);
        other = (double)engine->cost_ns[1];
        sim_run(sim, 30 * NS_PER_S);
        part = 1 - ((double)engine->cost_ns[1] - other) / (30.0 * NS_PER_S);
        g_test_message("gain %.1f %%: cap %u, %.4f of the time", 100 * (part / allowed - 1), cap,
                       part);
        g_assert_cmpfloat(part, <, 1.03 * allowed);
        sim_free(sim);
    }
}

/*
 * A process is killed when its page has what it has in flight, and not yet when that began. Its
 * slice is measured, and nobody else has work in flight.
 */
static void test_killed_while_joining(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *peer = sim_add(sim, 100, BATCH), *joining = sim_add(sim, 100, BATCH);

    joining->stopped = true;
    peer->slice->settings.cap = 50;
    peer->slice->settings.hard = true;
    sim_run(sim, NS_PER_S);
    sim_join(sim, joining, peer);
    sim_run(sim, 100 * NS_PER_MS);
    joining->usage.in_flight_ns = 20 * NS_PER_MS;
    sim_run(sim, 5 * NS_PER_MS);
    sim_exit(sim, joining);
    g_test_message("charged %.3f s for %.3f s", (double)peer->slice->gpu_ns / 1e9,
                   (double)peer->done_ns / 1e9);
    g_assert_cmpuint(peer->slice->gpu_ns, <, peer->done_ns + 150 * NS_PER_MS);
    sim_free(sim);
}

static void add_evasions(const char *group, void (*test)(const void *))
{
    for (gsize i = 0; i < G_N_ELEMENTS(evasions); i++) {
        g_autofree char *path =
            g_strdup_printf("/governor/adversary/%s/%s", group, evasions[i].name);

        g_test_add_data_func(path, &evasions[i], test);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_evasions("share", test_share);
    add_evasions("cap", test_cap);
    g_test_add_func("/governor/adversary/late-share", test_late_share);
    g_test_add_func("/governor/adversary/late-cap", test_late_cap);
    g_test_add_func("/governor/adversary/debt", test_debt);
    g_test_add_func("/governor/adversary/killed-while-joining", test_killed_while_joining);
    g_test_add_func("/governor/adversary/clock/poison", test_poison);
    g_test_add_func("/governor/adversary/clock/claims", test_claims);
    g_test_add_func("/governor/adversary/clock/light", test_light);
    g_test_add_func("/governor/adversary/clock/saved-up", test_saved_up);
    g_test_add_func("/governor/adversary/behind/accomplice", test_accomplice);
    g_test_add_func("/governor/adversary/behind/honest", test_no_accomplice);
    g_test_add_func("/governor/adversary/ranks", test_ranks);
    g_test_add_func("/governor/adversary/spans/liars", test_span_liars);
    g_test_add_func("/governor/adversary/spans/turns", test_turn_liars);
    g_test_add_func("/governor/adversary/spans/tails", test_tail_liars);
    g_test_add_func("/governor/adversary/spans/forgotten", test_forgotten);
    return g_test_run();
}
