// SPDX-License-Identifier: MIT
/*
 * The governor on a card with time slices and several engines (card.h), in simulated time: what is
 * true there and not on a processor.
 */
#include "simulation.h"

#define BATCH  (2 * NS_PER_MS)
#define LENGTH (10 * NS_PER_S)

static struct sim_tenant *add(struct simulation *sim, uint32_t weight, uint64_t batch_ns)
{
    struct sim_tenant *tenant = sim_add(sim, weight, batch_ns);

    tenant->async = true;
    /* Otherwise ends would be at ends of time slices again and again. */
    tenant->batch_jitter_ns = batch_ns / 5;
    return tenant;
}

/*
 * Submits as if it were free, whatever the arbiter says, and as if it had been allowed to: its work
 * overlaps with others' all the time.
 */
static void overlap(struct sim_tenant *tenant)
{
    tenant->ungoverned = true;
    coverage_add(&tenant->slice->turns, 0, UINT64_MAX, NULL, NULL);
}

static unsigned number_of(const struct simulation *sim, const struct sim_tenant *tenant)
{
    return (unsigned)(tenant - sim->tenants);
}

/* What was spent on a tenant: its work alone, and with the changes to it; and what it was charged.
 */
struct spent {
    double work;
    double cost;
    double charged;
};

static struct spent spent_on(struct simulation *sim, const struct sim_tenant *tenant)
{
    const struct model_engine_state *engine = &sim->card.model.engines[tenant->class];
    unsigned number = number_of(sim, tenant);

    /* With a look. */
    sim_run(sim, SIM_STEP_NS);
    return (struct spent){.work = (double)engine->ran_ns[number],
                          .cost = (double)engine->cost_ns[number],
                          .charged = (double)tenant->slice->gpu_ns};
}

/*
 * No less than its work and no more than that with the changes, give or take @within. What takes
 * longer than it was said to at the end of a lease is divided with nobody, so that lies pay
 * nothing.
 */
static void assert_charged(const struct spent *spent, double within)
{
    g_test_message("%.3f s of work, %.3f with changes, charged %.3f", spent->work / 1e9,
                   spent->cost / 1e9, spent->charged / 1e9);
    g_assert_cmpfloat(spent->charged, >, (1 - within) * spent->work);
    g_assert_cmpfloat(spent->charged, <, (1 + within) * spent->cost);
}

/*
 * Work of several that the card divides into time slices: each is charged what the card spent on
 * it, whatever the lengths. Without a division each would be charged for all.
 */
static void check_charged(unsigned count, const uint64_t *lengths, bool overlaps)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct spent before[4];

    for (unsigned i = 0; i < count; i++) {
        struct sim_tenant *tenant = add(sim, 100, lengths[i]);

        if (overlaps)
            overlap(tenant);
    }
    sim_run(sim, NS_PER_S);
    for (unsigned i = 0; i < count; i++)
        before[i] = spent_on(sim, &sim->tenants[i]);
    sim_run(sim, LENGTH);
    for (unsigned i = 0; i < count; i++) {
        struct spent spent = spent_on(sim, &sim->tenants[i]);

        spent.work -= before[i].work;
        spent.cost -= before[i].cost;
        spent.charged -= before[i].charged;
        g_assert_cmpfloat(spent.work, >, 0.1 * LENGTH);
        assert_charged(&spent, overlaps ? 0.02 : 0.04);
    }
    sim_free(sim);
}

static void test_charged(void)
{
    static const uint64_t two[] = {5 * NS_PER_MS, 7 * NS_PER_MS};
    static const uint64_t three[] = {3 * NS_PER_MS, 20 * NS_PER_MS, 8 * NS_PER_MS};

    check_charged(2, two, true);
    check_charged(3, three, true);
    check_charged(2, two, false);
    check_charged(3, three, false);
}

/* Two processes of one slice get two time slices of three, and pay for two. */
static void test_charged_processes(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *one, *two, *other;
    struct spent both, also;

    one = add(sim, 100, 5 * NS_PER_MS);
    two = add(sim, 100, 7 * NS_PER_MS);
    other = add(sim, 100, 6 * NS_PER_MS);
    sim_join(sim, two, one);
    overlap(one);
    overlap(two);
    overlap(other);
    sim_run(sim, LENGTH);
    both = spent_on(sim, one);
    also = spent_on(sim, two);
    both.work += also.work;
    both.cost += also.cost;
    assert_charged(&both, 0.02);
    also = spent_on(sim, other);
    assert_charged(&also, 0.02);
    sim_free(sim);
}

/*
 * However many processes a slice has, each of which has work on the card all the time: it pays for
 * what the card spent on them, and gets its cap, beside a slice with one process.
 */
static void check_ranks(unsigned ranks, bool capped, bool says_stalled)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *other = add(sim, 100, BATCH), *first = add(sim, 100, 3 * NS_PER_MS);
    const struct model_engine_state *engine = &sim->card.model.engines[CARD_COMPUTE];
    struct spent all = {0};
    double charged;

    for (unsigned i = 1; i < ranks; i++)
        sim_join(sim, add(sim, 100, 3 * NS_PER_MS), first);
    /* When it has seen its page. */
    for (unsigned i = 0; i < sim->count; i++) {
        sim->tenants[i].start_ns = NS_PER_MS;
        sim->tenants[i].says_stalled = says_stalled;
        /* Waits for each end: a pipeline's next submission is there before it has to wait long. */
        sim->tenants[i].async = !says_stalled;
        sim->tenants[i].think_ns = says_stalled ? 100 * NS_PER_US : 0;
    }
    first->slice->settings.cap = capped ? 20 : 0;
    first->slice->settings.hard = capped;
    sim_run(sim, NS_PER_S);
    charged = (double)first->slice->gpu_ns;
    for (unsigned i = 0; i < sim->count; i++)
        all.work -= &sim->tenants[i] == other ? 0 : (double)engine->ran_ns[i];
    for (unsigned i = 0; i < sim->count; i++)
        all.cost -= &sim->tenants[i] == other ? 0 : (double)engine->cost_ns[i];
    sim_run(sim, LENGTH);
    for (unsigned i = 0; i < sim->count; i++) {
        struct spent one = spent_on(sim, &sim->tenants[i]);

        all.work += &sim->tenants[i] == other ? 0 : one.work;
        all.cost += &sim->tenants[i] == other ? 0 : one.cost;
    }
    charged = (double)first->slice->gpu_ns - charged;
    g_test_message("%u processes%s: %.3f s of work, %.3f with changes, charged %.3f", ranks,
                   capped ? ", cap 20 %" : "", all.work / 1e9, all.cost / 1e9, charged / 1e9);
    g_assert_cmpfloat(charged, >, 0.97 * all.work);
    g_assert_cmpfloat(charged, <, 1.03 * all.cost);
    g_assert_cmpfloat(ABS(all.cost / (double)LENGTH / (capped ? 0.2 : 0.5) - 1), <, 0.03);
    sim_free(sim);
}

static void test_ranks(void)
{
    static const unsigned ranks[] = {1, 16, 64};

    for (unsigned i = 0; i < G_N_ELEMENTS(ranks); i++)
        check_ranks(ranks[i], false, false);
    check_ranks(16, true, false);
}

/*
 * Work that waits for its time slice behind others' has not begun for some milliseconds, and a door
 * takes that for a stall. It is none: all of the slice's processes would go at once, and their work
 * would be in everybody's way.
 */
static void test_ranks_that_say_stalled(void)
{
    check_ranks(64, false, true);
}

/*
 * Leases are long among slices that always have work. The processes of one take turns within them:
 * none of 64 waits for a round of leases.
 */
static void test_crowd(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *other = add(sim, 100, BATCH), *first = add(sim, 100, NS_PER_MS);
    uint64_t worst = 0, least = UINT64_MAX, most = 0, ranks_ns = 0;

    for (unsigned i = 1; i < 64; i++)
        sim_join(sim, add(sim, 100, NS_PER_MS), first);
    sim_run(sim, 4 * NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 2 * LENGTH);
    for (unsigned i = 1; i < sim->count; i++) {
        const struct sim_tenant *rank = &sim->tenants[i];

        worst = MAX(worst, rank->worst_ns);
        least = MIN(least, rank->done_ns);
        most = MAX(most, rank->done_ns);
        ranks_ns += rank->done_ns;
    }
    g_test_message("64 processes: 1 ms took %.0f ms at most, least and most %.3f and %.3f s; %.3f "
                   "beside %.3f",
                   (double)worst / 1e6, (double)least / 1e9, (double)most / 1e9,
                   (double)ranks_ns / (2 * LENGTH), (double)other->done_ns / (2 * LENGTH));
    g_assert_cmpuint(worst, <, 2500 * NS_PER_MS);
    g_assert_cmpfloat((double)least, >, 0.7 * (double)most);
    g_assert_cmpfloat((double)ranks_ns, >, 0.45 * 2 * LENGTH);
    sim_free(sim);
}

/* Nor is a submission learnt to be longer than it is, because others ran in its time. */
static void test_learnt(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *one = add(sim, 100, 5 * NS_PER_MS), *two = add(sim, 100, 5 * NS_PER_MS);

    overlap(one);
    overlap(two);
    sim_run(sim, LENGTH);
    g_test_message("%.2f and %.2f ms", one->slice->batch_ns / 1e6, two->slice->batch_ns / 1e6);
    g_assert_cmpfloat(ABS(one->slice->batch_ns / 5e6 - 1), <, 0.1);
    g_assert_cmpfloat(ABS(two->slice->batch_ns / 5e6 - 1), <, 0.1);
    sim_free(sim);
}

static double done(const struct sim_tenant *tenant)
{
    return (double)tenant->done_ns / LENGTH;
}

static void measure(struct simulation *sim)
{
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, LENGTH);
}

/* Who copies and who encodes does not wait for those who compute. */
static void test_classes(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *computes = add(sim, 10, BATCH), *copies = add(sim, 100, BATCH);
    struct sim_tenant *encodes = add(sim, 100, BATCH), *also = add(sim, 30, BATCH);

    sim_set_class(sim, copies, GOVERNOR_CLASS_COPY);
    sim_set_class(sim, also, GOVERNOR_CLASS_COPY);
    sim_set_class(sim, encodes, GOVERNOR_CLASS_VIDEO);
    measure(sim);
    g_test_message("%.3f, %.3f and %.3f, %.3f", done(computes), done(copies), done(also),
                   done(encodes));
    g_assert_cmpfloat(done(computes), >, 0.98);
    g_assert_cmpfloat(done(encodes), >, 0.98);
    /* Among those who copy there are shares. */
    g_assert_cmpfloat(ABS(done(copies) / (done(copies) + done(also)) - 100.0 / 130), <, 0.008);
    g_assert_cmpfloat(done(copies) + done(also), >, 0.95);
    sim_free(sim);
}

/* Processes of one slice work at the same time: the lease is the slice's. */
static void test_processes(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *one = add(sim, 50, BATCH), *two = add(sim, 50, BATCH);
    struct sim_tenant *other = add(sim, 50, BATCH);
    unsigned both = 0, looks = 20000;

    sim_join(sim, two, one);
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    for (unsigned i = 0; i < looks; i++) {
        sim_run(sim, LENGTH / looks);
        both += one->in_flight && two->in_flight && !other->in_flight;
    }
    g_test_message("both in %.3f of the time; %.3f and %.3f against %.3f", (double)both / looks,
                   done(one), done(two), done(other));
    g_assert_cmpfloat((double)both / looks, >, 0.3);
    /* They pay for the changes between them. */
    g_assert_cmpfloat(ABS((done(one) + done(two)) / done(other) - 1), <, 0.08);
    g_assert_cmpfloat(ABS(done(one) / done(two) - 1), <, 0.15);
    sim_free(sim);
}

/* Some of a slice's processes are stopped while they wait: the others have its turns. */
static void test_stopped_processes(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *other = add(sim, 50, BATCH), *first = add(sim, 50, BATCH);
    double all = 0;

    for (unsigned i = 1; i < 12; i++)
        sim_join(sim, add(sim, 50, BATCH), first);
    sim_run(sim, NS_PER_S);
    for (unsigned i = 1; i < sim->count; i++)
        sim->tenants[i].stopped = i % 2;
    measure(sim);
    for (unsigned i = 1; i < sim->count; i++)
        all += done(&sim->tenants[i]);
    g_test_message("%.3f beside %.3f", all, done(other));
    g_assert_cmpfloat(all, >, 0.4);
    g_assert_cmpfloat(all + done(other), >, 0.9);
    sim_free(sim);
}

/* How much a process with two queues gets done, alone or beside another. */
static double async_compute(bool governed, bool metered, unsigned others)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *tenant = add(sim, 50, BATCH);
    double result;

    tenant->queues = 2;
    for (unsigned i = 0; i < others; i++)
        add(sim, 50, BATCH);
    for (unsigned i = 0; i < sim->count; i++)
        sim->tenants[i].ungoverned = !governed;
    /* A cap that is not reached has it measured all the time. */
    if (metered) {
        tenant->slice->settings.cap = 99;
        tenant->slice->settings.hard = true;
    }
    measure(sim);
    result = done(tenant);
    sim_free(sim);
    return result;
}

static void test_async_compute(void)
{
    double alone = async_compute(true, false, 0) / async_compute(false, false, 0);
    double measured = async_compute(true, true, 0) / async_compute(false, false, 0);
    double shared = async_compute(true, false, 1) / async_compute(false, false, 1);

    g_test_message("alone %.3f, measured %.3f, shared %.3f of what it is without the governor",
                   alone, measured, shared);
    g_assert_cmpfloat(alone, >=, 0.98);
    g_assert_cmpfloat(measured, >=, 0.97);
    g_assert_cmpfloat(shared, >=, 0.95);
}

/*
 * Threads that are held up again and again (cpu.max) do not see ends, and do not use their leases.
 * The GPU is not kept for them.
 */
static void test_held_up(void)
{
    static const uint64_t batches[] = {NS_PER_MS, 3 * NS_PER_MS};

    for (unsigned i = 0; i < 8; i++) {
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
        struct sim_tenant *held = add(sim, 100, batches[i / 2 % 2]), *other = add(sim, 100, BATCH);
        double busy;

        if (i >= 4)
            sim_set_card(sim, CARD_QUICK);
        held->runs_ns = 20 * NS_PER_MS;
        held->rests_ns = 80 * NS_PER_MS;
        held->async = i % 2;
        measure(sim);
        busy = (double)sim->busy_ns / LENGTH;
        g_test_message("%s of %.0f ms: busy %.3f, %.3f and %.3f", i % 2 ? "pipeline" : "loop",
                       (double)held->batch_ns / 1e6, busy, done(held), done(other));
        g_assert_cmpfloat(busy, >, 0.94);
        g_assert_cmpfloat(done(held), >, 0.05);
        sim_free(sim);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/hardware/charged", test_charged);
    g_test_add_func("/governor/hardware/charged-processes", test_charged_processes);
    g_test_add_func("/governor/hardware/ranks", test_ranks);
    g_test_add_func("/governor/hardware/ranks-that-say-stalled", test_ranks_that_say_stalled);
    g_test_add_func("/governor/hardware/crowd", test_crowd);
    g_test_add_func("/governor/hardware/learnt", test_learnt);
    g_test_add_func("/governor/hardware/classes", test_classes);
    g_test_add_func("/governor/hardware/processes", test_processes);
    g_test_add_func("/governor/hardware/stopped-processes", test_stopped_processes);
    g_test_add_func("/governor/hardware/async-compute", test_async_compute);
    g_test_add_func("/governor/hardware/held-up", test_held_up);
    return g_test_run();
}
