// SPDX-License-Identifier: MIT
/*
 * What a handover takes on the host and on the GPU is measured, and lead, depth and the least lease
 * follow from it; on several models of a card, in simulated time.
 */
#include "simulation.h"

#include "scheduler_parts.h"

#define LENGTH (10 * NS_PER_S)

static struct sim_tenant *add(struct simulation *sim, uint64_t batch_ns)
{
    struct sim_tenant *tenant = sim_add(sim, 100, batch_ns);

    tenant->async = true;
    tenant->batch_jitter_ns = batch_ns / 5;
    return tenant;
}

/* Somebody returns from a pause again and again, so that no lease is long for its own sake. */
static void add_visitor(struct simulation *sim)
{
    struct sim_tenant *visitor = sim_add(sim, 100, 500 * NS_PER_US);

    visitor->burst = 1;
    visitor->period_ns = 50 * NS_PER_MS;
}

/* Of the GPU's time, what was neither work nor nothing to do: changes between processes. */
static double lost(const struct simulation *sim)
{
    const struct model_engine_state *engine = &sim->card.model.engines[CARD_COMPUTE];
    uint64_t cost = 0;

    for (unsigned i = 0; i < sim->count; i++)
        cost += engine->cost_ns[i];
    return (double)(cost - engine->busy_ns) / (double)cost;
}

/*
 * The measure is about that of the model: the GPU may have begun to change before the end that is
 * seen. Leases follow.
 */
static void check_gpu(enum card_kind kind, double most_lost)
{
    struct simulation *sim = sim_new(POLICY_SHARES, kind);
    double is = (double)card_models[kind].handover_ns, seen;
    uint64_t lease;

    add(sim, NS_PER_MS);
    add(sim, NS_PER_MS);
    add_visitor(sim);
    sim_run(sim, LENGTH);
    seen = sim->scheduler.handover.mean_ns;
    sim->scheduler.paused_at = sim->now;
    lease = tempo_quantum(&sim->scheduler, sim->now);
    sim->scheduler.paused_at = sim->now - 100 * NS_PER_MS;
    g_assert_cmpuint(tempo_quantum(&sim->scheduler, sim->now), ==,
                     CLAMP((uint64_t)(256 * seen), QUANTUM_STEADY_NS, 32 * NS_PER_MS));
    g_test_message(
        "%s: a handover takes %.0f us, seen %.0f; lease %.1f ms; lost %.2f %%, busy %.3f",
        card_models[kind].name, is / 1e3, seen / 1e3, (double)lease / 1e6, 100 * lost(sim),
        (double)sim->busy_ns / LENGTH);
    g_assert_cmpfloat(ABS(seen - is), <=, 2 * SIM_STEP_NS + 0.3 * is);
    g_assert_cmpuint(lease, >=, QUANTUM_NS);
    g_assert_cmpuint(lease, <=, QUANTUM_STEADY_NS);
    g_assert_cmpfloat(lost(sim), <, most_lost);
    sim_free(sim);
}

static void test_gpu(void)
{
    check_gpu(CARD_QUICK, 0.01);
    check_gpu(CARD_SLICED, 0.03);
    /* With leases of 4 ms: 6 %. */
    check_gpu(CARD_SLOW, 0.04);
}

/* On hosts that react slowly, members are told earlier and queue more, and the GPU stays busy. */
static void check_host(uint64_t wake_ns, uint64_t *lead, uint64_t *depth)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    double busy;

    for (unsigned i = 0; i < 2; i++)
        add(sim, NS_PER_MS)->wake_ns = wake_ns;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, LENGTH);
    busy = (double)sim->busy_ns / LENGTH;
    *lead = handover_lead(&sim->tenants[0].slice->handover);
    *depth = handover_depth(&sim->tenants[0].slice->handover);
    g_test_message("woken after %.0f us: lead %.0f us, depth %.0f us, busy %.3f",
                   (double)wake_ns / 1e3, (double)*lead / 1e3, (double)*depth / 1e3, busy);
    g_assert_cmpfloat(busy, >, 0.97);
    sim_free(sim);
}

static void test_host(void)
{
    uint64_t lead, depth, slow_lead, slow_depth;

    check_host(20 * NS_PER_US, &lead, &depth);
    check_host(400 * NS_PER_US, &slow_lead, &slow_depth);
    g_assert_cmpuint(lead, <, 200 * NS_PER_US);
    g_assert_cmpuint(slow_lead, >=, 400 * NS_PER_US);
    g_assert_cmpuint(depth, <, slow_depth);
    g_assert_cmpuint(slow_depth, <=, NS_PER_MS);
}

/*
 * One slice that reacts late makes handovers among others no earlier: only whoever is next is told
 * early.
 */
static void test_next(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);

    add(sim, NS_PER_MS);
    add(sim, NS_PER_MS);
    add(sim, NS_PER_MS)->wake_ns = 8 * NS_PER_MS;
    sim_run(sim, LENGTH);
    g_test_message("lost %.2f %%, busy %.3f", 100 * lost(sim), (double)sim->busy_ns / LENGTH);
    /* 0.9 if all are told 8 ms early. */
    g_assert_cmpfloat(lost(sim), <, 0.006);
    sim_free(sim);
}

/* A higher class waits for what a slice has on the GPU, not for what each of its processes has. */
static void test_ranks(void)
{
    for (unsigned ranks = 1; ranks <= 64; ranks *= 8) {
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
        struct sim_tenant *online = sim_add(sim, 100, NS_PER_MS);
        struct sim_tenant *first = add(sim, 200 * NS_PER_US);

        online->slice->settings.priority = 8;
        online->burst = 1;
        online->period_ns = 53 * NS_PER_MS + 7 * NS_PER_US;
        for (unsigned i = 1; i < ranks; i++)
            sim_join(sim, add(sim, 200 * NS_PER_US), first);
        sim_run(sim, NS_PER_S);
        sim_reset_counts(sim);
        sim_run(sim, LENGTH);
        g_test_message("%u processes: 1 ms took %.2f ms at most, busy %.3f", ranks,
                       (double)online->worst_ns / 1e6, (double)sim->busy_ns / LENGTH);
        /* With a depth for each of 64: 94 ms. At most a change between two of them is on its way.
         */
        g_assert_cmpuint(online->worst_ns, <, 1750 * NS_PER_US);
        g_assert_cmpfloat((double)sim->busy_ns / LENGTH, >, 0.98);
        sim_free(sim);
    }
}

/* While nobody has to wait for what is queued, more may be; less if it is a higher class. */
static void test_depth(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *first = add(sim, NS_PER_MS), *second = add(sim, NS_PER_MS);

    sim_run(sim, NS_PER_S);
    g_assert_cmpuint(first->grant.depth_ns, ==, DEPTH_STEADY_NS);
    add_visitor(sim);
    sim_run(sim, NS_PER_S);
    g_assert_cmpuint(first->grant.depth_ns, ==, handover_depth(&first->slice->handover));
    sim->tenants[2].stopped = true;
    sim_run(sim, NS_PER_S);
    g_assert_cmpuint(first->grant.depth_ns, ==, DEPTH_STEADY_NS);
    second->slice->settings.priority = 1;
    sim_run(sim, NS_PER_S);
    g_assert_cmpuint(first->grant.depth_ns, ==, handover_depth(&first->slice->handover) / 2);
    g_assert_cmpuint(first->grant.depth_ns, <=, NS_PER_MS / 2);
    sim_free(sim);
}

/*
 * Loops that wait for each end react at once, though the arbiter looks only when several of their
 * submissions under a lease have begun and ended.
 */
static void test_loops(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    uint64_t lead;

    for (unsigned i = 0; i < 2; i++)
        sim_add(sim, 100, 2 * NS_PER_MS)->think_ns = 20 * NS_PER_US;
    sim_run(sim, 2 * NS_PER_S);
    lead = handover_lead(&sim->tenants[0].slice->handover);
    g_test_message("lead %.0f us", (double)lead / 1e3);
    g_assert_cmpuint(lead, <, 300 * NS_PER_US);
    sim_free(sim);
}

/*
 * Whoever reacts to a lease only after the time for which it is kept (processors that are far too
 * busy, an emulated host) gets work done all the same, also if all are like that.
 */
static void check_slow(uint64_t batch_ns, uint64_t wake_ns, unsigned count, bool async,
                       double least)
{
    struct simulation *sim = g_new(struct simulation, 1);
    double busy;

    sim_init(sim, POLICY_SHARES);
    for (unsigned i = 0; i < count; i++) {
        struct sim_tenant *tenant = sim_add(sim, 100, batch_ns);

        tenant->wake_ns = wake_ns;
        tenant->async = async;
        tenant->think_ns = NS_PER_MS;
        tenant->batch_jitter_ns = batch_ns / 25;
    }
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, LENGTH);
    busy = (double)sim->busy_ns / LENGTH;
    g_test_message("%u %s of %.0f ms that react after %.0f ms: busy %.3f", count,
                   async ? "pipelines" : "loops", (double)batch_ns / 1e6, (double)wake_ns / 1e6,
                   busy);
    g_assert_cmpfloat(busy, >, least);
    for (unsigned i = 0; i < count; i++)
        g_assert_cmpfloat(sim_share(sim, &sim->tenants[i]), >, 0.5 / count);
    sim_free(sim);
}

static void test_slow(void)
{
    for (unsigned async = 0; async < 2; async++) {
        check_slow(2 * NS_PER_MS, 20 * NS_PER_MS, 2, async, 0.05);
        check_slow(20 * NS_PER_MS, 20 * NS_PER_MS, 4, async, 0.3);
        check_slow(50 * NS_PER_MS, 20 * NS_PER_MS, 2, async, 0.7);
        check_slow(50 * NS_PER_MS, 40 * NS_PER_MS, 4, async, 0.7);
        check_slow(50 * NS_PER_MS, 80 * NS_PER_MS, 2, async, 0.2);
    }
    check_slow(250 * NS_PER_MS, 80 * NS_PER_MS, 2, false, 0.85);
}

/*
 * Two that react late share evenly: how late one comes is measured from when it was told, even if
 * its lease was prolonged since then.
 */
static void check_slow_shares(uint64_t batch_ns, uint64_t wake_ns, double least)
{
    struct simulation *sim = g_new(struct simulation, 1);
    double share, busy;

    sim_init(sim, POLICY_SHARES);
    for (unsigned i = 0; i < 2; i++) {
        struct sim_tenant *tenant = add(sim, batch_ns);

        tenant->wake_ns = wake_ns;
        tenant->batch_jitter_ns = batch_ns / 25;
    }
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, LENGTH);
    share = sim_share(sim, &sim->tenants[0]);
    busy = (double)sim->busy_ns / LENGTH;
    g_test_message("pipelines of %.0f ms that react after %.0f ms: %.3f of it, busy %.3f",
                   (double)batch_ns / 1e6, (double)wake_ns / 1e6, share, busy);
    g_assert_cmpfloat(ABS(share - 0.5), <, 0.05);
    g_assert_cmpfloat(busy, >, least);
    sim_free(sim);
}

static void test_slow_shares(void)
{
    check_slow_shares(20 * NS_PER_MS, 40 * NS_PER_MS, 0.4);
    check_slow_shares(50 * NS_PER_MS, 60 * NS_PER_MS, 0.7);
    check_slow_shares(100 * NS_PER_MS, 60 * NS_PER_MS, 0.85);
    check_slow_shares(250 * NS_PER_MS, 40 * NS_PER_MS, 0.95);
    check_slow_shares(250 * NS_PER_MS, 80 * NS_PER_MS, 0.95);
}

/*
 * Work of two that was queued while nobody was measured ends in turn. Whoever waits for the other's
 * is not late.
 */
static void test_behind_others(void)
{
    struct simulation *sim = g_new(struct simulation, 1);

    sim_init(sim, POLICY_SHARES);
    for (unsigned i = 0; i < 2; i++) {
        struct sim_tenant *tenant = add(sim, 250 * NS_PER_MS);

        tenant->wake_ns = 40 * NS_PER_MS;
        tenant->batch_jitter_ns = 10 * NS_PER_MS;
    }
    for (unsigned i = 0; i < 100; i++) {
        sim_run(sim, 30 * NS_PER_MS);
        g_assert_false(sim->tenants[0].member.silent || sim->tenants[1].member.silent);
    }
    sim_free(sim);
}

/* One of three says what it likes about the begin and the end of its work. */
static void test_gpu_liar(void)
{
    struct gpu_handover gpu = {0};

    for (unsigned i = 0; i < 100; i++) {
        gpu_handover_learn(&gpu, 1, 2, 140 * NS_PER_US);
        gpu_handover_learn(&gpu, 2, 1, 150 * NS_PER_US);
        for (unsigned j = 1; j <= 2; j++) {
            gpu_handover_learn(&gpu, j, 3, NS_PER_MS);
            gpu_handover_learn(&gpu, 3, j, NS_PER_MS);
        }
    }
    g_assert_cmpfloat(gpu.mean_ns, <, 151 * NS_PER_US);
    g_assert_cmpfloat(gpu.mean_ns, >, 139 * NS_PER_US);
}

/* Nobody makes leases endless, whatever he says. */
static void test_bounds(void)
{
    struct gpu_handover gpu = {0};
    struct handover host = {0};

    g_assert_cmpuint(gpu_handover_lease(&gpu, 0), ==, 0);
    g_assert_cmpuint(handover_depth(&host), ==, 300 * NS_PER_US);
    for (unsigned i = 0; i < 100; i++) {
        gpu_handover_learn(&gpu, 1, 2, UINT64_MAX);
        handover_learn(&host, UINT64_MAX);
    }
    g_assert_cmpuint(gpu_handover_lease(&gpu, 0), ==, 0);
    /* Who is held up for so long needs no depth. */
    g_assert_cmpuint(handover_depth(&host), ==, 300 * NS_PER_US);
    for (unsigned i = 0; i < 100; i++) {
        gpu_handover_learn(&gpu, 1, 2, NS_PER_MS);
        handover_learn(&host, 500 * NS_PER_US);
    }
    g_assert_cmpuint(gpu_handover_lease(&gpu, 0), ==, QUANTUM_STEADY_NS);
    g_assert_cmpuint(handover_depth(&host), ==, NS_PER_MS);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/handover/gpu", test_gpu);
    g_test_add_func("/governor/handover/host", test_host);
    g_test_add_func("/governor/handover/next", test_next);
    g_test_add_func("/governor/handover/ranks", test_ranks);
    g_test_add_func("/governor/handover/depth", test_depth);
    g_test_add_func("/governor/handover/loops", test_loops);
    g_test_add_func("/governor/handover/slow", test_slow);
    g_test_add_func("/governor/handover/slow-shares", test_slow_shares);
    g_test_add_func("/governor/handover/behind-others", test_behind_others);
    g_test_add_func("/governor/handover/gpu-liar", test_gpu_liar);
    g_test_add_func("/governor/handover/bounds", test_bounds);
    return g_test_run();
}
