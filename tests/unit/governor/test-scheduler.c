// SPDX-License-Identifier: MIT
/* Shares, caps and priorities, in simulated time. */
#include "simulation.h"

#define BATCH (2 * NS_PER_MS)

static void assert_near(double value, double wanted, double tolerance)
{
    g_test_message("%.4f, wanted %.4f +- %.4f", value, wanted, tolerance);
    g_assert_cmpfloat(value, >, wanted - tolerance);
    g_assert_cmpfloat(value, <, wanted + tolerance);
}

/* The GPU's time that was spent on work. */
static double busy(const struct simulation *sim, uint64_t ns)
{
    return (double)sim->busy_ns / (double)ns;
}

typedef struct {
    const char *name;
    uint32_t weights[9];
    bool async;
    uint64_t batch_ns;
    uint64_t think_ns;
    uint64_t jitter_ns;
    uint64_t batch_jitter_ns;
} ShareCase;

static const ShareCase share_cases[] = {
    {"30-70-async", {30, 70}, true, BATCH, 0, 0, 0},
    {"10-20-70-async", {10, 20, 70}, true, BATCH, 0, 0, 0},
    {"8-equal-async", {1, 1, 1, 1, 1, 1, 1, 1}, true, BATCH, 0, 0, 0},
    {"30-70-loop", {30, 70}, false, BATCH, 50 * NS_PER_US, 0, 0},
    {"30-70-loop-jitter", {30, 70}, false, BATCH, 50 * NS_PER_US, 100 * NS_PER_US, 0},
    {"10-20-70-loop", {10, 20, 70}, false, BATCH, 100 * NS_PER_US, 100 * NS_PER_US, 0},
    {"8-equal-loop", {1, 1, 1, 1, 1, 1, 1, 1}, false, BATCH, 100 * NS_PER_US, 100 * NS_PER_US, 0},
    {"30-70-short", {30, 70}, true, 50 * NS_PER_US, 0, 0, 0},
    {"30-70-long", {30, 70}, true, 100 * NS_PER_MS, 0, 0, 0},
    /* Slow ones, by a long way and not on the minute: a VM's. */
    {"30-70-slow-loop",
     {30, 70},
     false,
     250 * NS_PER_MS,
     5 * NS_PER_MS,
     10 * NS_PER_MS,
     100 * NS_PER_MS},
    {"30-70-slow-async", {30, 70}, true, 250 * NS_PER_MS, 0, 0, 100 * NS_PER_MS},
};

static void test_shares(const void *data)
{
    const ShareCase *c = data;
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    uint64_t length = (c->batch_ns > 10 * BATCH ? 60 : 10) * NS_PER_S;
    uint32_t sum = 0;
    double alone;

    for (unsigned i = 0; c->weights[i]; i++) {
        struct sim_tenant *tenant = sim_add(sim, c->weights[i], c->batch_ns);

        tenant->async = c->async;
        tenant->think_ns = c->think_ns;
        tenant->think_jitter_ns = c->jitter_ns;
        tenant->batch_jitter_ns = c->batch_jitter_ns;
        sum += c->weights[i];
    }
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, length);
    for (unsigned i = 0; c->weights[i]; i++)
        assert_near(sim_share(sim, &sim->tenants[i]), (double)c->weights[i] / sum, 0.003);
    g_test_message("busy %.4f", busy(sim, length));
    /* Not less than one of them alone, which pauses after each. */
    alone = (double)c->batch_ns / (double)(c->batch_ns + c->think_ns + c->jitter_ns / 2);
    g_assert_cmpfloat(busy(sim, length), >, 0.97 * alone);
    sim_free(sim);
}

/* One tenant, never more than its cap, in steps of any length. */
static void check_cap(uint64_t batch_ns, bool async, uint64_t estimate_ns, double tolerance)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *tenant = sim_add(sim, 100, batch_ns);

    tenant->async = async;
    tenant->estimate_ns = estimate_ns;
    tenant->slice->settings.cap = 20;
    tenant->slice->settings.hard = true;
    sim_run(sim, 11 * NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 60 * NS_PER_S);
    assert_near(busy(sim, 60 * NS_PER_S), 0.2, tolerance);
    sim_free(sim);
}

static void test_cap(void)
{
    check_cap(BATCH, true, 0, 0.002);
    check_cap(BATCH, false, 0, 0.002);
    check_cap(50 * NS_PER_US, false, 0, 0.002);
    check_cap(500 * NS_PER_MS, false, 0, 0.012);
    check_cap(500 * NS_PER_MS, true, NS_PER_MS, 0.02);
    check_cap(2 * NS_PER_S, false, 0, 0.035);
}

/*
 * A program loses half a millisecond at the begin of each lease (tests/cuda/RESULTS-h200.md), so a
 * cap is given in at most 18 leases a second: that costs less than 1 % of the card.
 */
static void test_cap_leases(void)
{
    static const uint32_t caps[] = {10, 20, 50, 80};

    for (size_t i = 0; i < G_N_ELEMENTS(caps); i++) {
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
        struct sim_tenant *tenant = sim_add(sim, 100, NS_PER_MS);
        unsigned begins = 0;
        bool works = false;

        tenant->async = true;
        tenant->slice->settings.cap = caps[i];
        tenant->slice->settings.hard = true;
        sim_run(sim, NS_PER_S);
        for (unsigned ms = 0; ms < 10 * 1000; ms++) {
            bool worked = works;
            uint64_t done = tenant->done;

            sim_run(sim, NS_PER_MS);
            works = tenant->in_flight || tenant->done > done;
            begins += works && !worked;
        }
        g_test_message("cap of %u %%: %u begins in 10 s", caps[i], begins);
        g_assert_cmpuint(begins, >, 50);
        g_assert_cmpuint(begins, <=, 180);
        sim_free(sim);
    }
}

/* The other gets what the capped one leaves, and need be neither slow nor idle for it. */
static void test_cap_beside(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *capped = sim_add(sim, 100, BATCH), *other = sim_add(sim, 100, BATCH);

    capped->async = other->async = true;
    capped->slice->settings.cap = 20;
    capped->slice->settings.hard = true;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 20 * NS_PER_S);
    assert_near(sim_share(sim, capped), 0.2, 0.004);
    g_assert_cmpfloat(busy(sim, 20 * NS_PER_S), >, 0.98);
    sim_free(sim);
}

/*
 * Four small slices of a big type, as anybody with a little quota may have, beside one that was
 * promised 60 %; with it, one that was promised nothing.
 */
static void test_promise(void)
{
    for (unsigned rest = 0; rest < 2; rest++) {
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
        struct sim_tenant *promised = sim_add(sim, 480, BATCH);

        promised->slice->settings.share_ppm = 600000;
        for (unsigned i = 0; i < 4; i++)
            sim_add(sim, 800, BATCH)->slice->settings.share_ppm = 40000;
        if (rest)
            sim_add(sim, 800, BATCH);
        for (unsigned i = 0; i < sim->count; i++)
            sim->tenants[i].async = true;
        sim_run(sim, NS_PER_S);
        sim_reset_counts(sim);
        sim_run(sim, 10 * NS_PER_S);
        assert_near(sim_share(sim, promised), 0.6, 0.005);
        for (unsigned i = 1; i < sim->count; i++)
            assert_near(sim_share(sim, &sim->tenants[i]), rest ? 0.08 : 0.1, 0.005);
        g_assert_cmpfloat(busy(sim, 10 * NS_PER_S), >, 0.98);
        sim_free(sim);
    }
}

/* Weights divide what is beyond promises, and what those leave that have no work. */
static void test_promise_weight(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *one = sim_add(sim, 30, BATCH), *two = sim_add(sim, 70, BATCH);
    struct sim_tenant *idle = sim_add(sim, 30, BATCH);

    one->async = two->async = true;
    idle->stopped = true;
    for (unsigned i = 0; i < 3; i++)
        sim->tenants[i].slice->settings.share_ppm = 250000;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 10 * NS_PER_S);
    assert_near(sim_share(sim, one), 0.3, 0.003);
    /* More was promised than there is: all get less alike. */
    one->slice->settings.share_ppm = 900000;
    two->slice->settings.share_ppm = 600000;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 10 * NS_PER_S);
    assert_near(sim_share(sim, one), 0.6, 0.01);
    sim_free(sim);
}

/*
 * More was promised than there is: a guaranteed promise holds beside burstable ones, which have the
 * rest in proportion.
 */
static void test_promise_first(void)
{
    static const double wanted[] = {0.5, 0.327, 0.173};
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);

    for (unsigned i = 0; i < 3; i++)
        sim_add(sim, 100, BATCH)->async = true;
    sim->tenants[0].slice->settings.guaranteed = true;
    sim->tenants[0].slice->settings.share_ppm = 500000;
    sim->tenants[1].slice->settings.share_ppm = 800000;
    sim->tenants[2].slice->settings.share_ppm = 400000;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 10 * NS_PER_S);
    for (unsigned i = 0; i < 3; i++)
        assert_near(sim_share(sim, &sim->tenants[i]), wanted[i], 0.01);
    sim_free(sim);
}

/* A cap that is not hard has no effect. */
static void test_soft_cap(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *tenant = sim_add(sim, 100, BATCH);

    tenant->async = true;
    tenant->slice->settings.cap = 20;
    sim_run(sim, 5 * NS_PER_S);
    g_assert_cmpfloat(busy(sim, 5 * NS_PER_S), >, 0.98);
    g_assert_cmpint(tenant->grant.mode, ==, GOVERNOR_MODE_FREE);
    sim_free(sim);
}

static void test_policies(void)
{
    static const enum gpu_policy policies[] = {POLICY_BEST_EFFORT, POLICY_EQUAL, POLICY_FIXED};
    static const double wanted[] = {0.5, 0.5, 0.25};

    for (gsize i = 0; i < G_N_ELEMENTS(policies); i++) {
        struct simulation *sim = sim_new(policies[i], CARD_IN_ORDER);
        struct sim_tenant *one = sim_add(sim, 10, BATCH), *two = sim_add(sim, 1000, BATCH);

        one->async = two->async = true;
        one->slice->settings.priority = 15;
        one->slice->settings.share_ppm = 250000;
        two->slice->settings.share_ppm = 500000;
        sim_run(sim, NS_PER_S);
        sim_reset_counts(sim);
        sim_run(sim, 10 * NS_PER_S);
        assert_near((double)one->done_ns / (10 * NS_PER_S), wanted[i], 0.01);
        assert_near((double)two->done_ns / (10 * NS_PER_S), 0.5, 0.01);
        /* Alone: only members that are present get the rest. */
        one->stopped = true;
        sim_run(sim, NS_PER_S);
        sim_reset_counts(sim);
        sim_run(sim, 10 * NS_PER_S);
        assert_near(busy(sim, 10 * NS_PER_S), policies[i] == POLICY_BEST_EFFORT ? 0.99 : 0.5,
                    0.0101);
        sim_free(sim);
    }
}

/* Online waits for what has begun at most, and offline gets what online leaves. */
static void test_priority(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *online = sim_add(sim, 100, NS_PER_MS), *offline = sim_add(sim, 100, BATCH);
    uint64_t length = 20 * NS_PER_S;

    online->slice->settings.priority = 8;
    online->burst = 1;
    online->period_ns = 13 * NS_PER_MS + 7 * NS_PER_US;
    offline->async = true;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, length);
    g_test_message("online worst %.3f ms, busy %.4f", (double)online->worst_ns / 1e6,
                   busy(sim, length));
    g_assert_cmpuint(online->worst_ns, <, NS_PER_MS + BATCH * 5 / 4);
    assert_near((double)online->done * (double)online->period_ns / (double)length, 1, 0.01);
    g_assert_cmpfloat((double)offline->done_ns, >,
                      0.95 * ((double)length - (double)online->done_ns));
    sim_free(sim);
}

/* Processes of one slice take turns without delay, below a higher class that has no work, too. */
static void test_siblings(void)
{
    for (unsigned below = 0; below < 2; below++) {
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
        struct sim_tenant *one = sim_add(sim, 100, 5 * NS_PER_MS);
        struct sim_tenant *two = sim_add(sim, 100, 5 * NS_PER_MS);
        struct sim_tenant *other = sim_add(sim, 100, BATCH);

        sim_join(sim, two, one);
        one->think_ns = two->think_ns = 5 * NS_PER_MS;
        other->slice->settings.priority = below ? 8 : 0;
        other->stopped = below;
        sim_run(sim, NS_PER_S);
        sim_reset_counts(sim);
        sim_run(sim, 5 * NS_PER_S);
        g_test_message("worst %.1f and %.1f ms, busy %.4f", (double)one->worst_ns / 1e6,
                       (double)two->worst_ns / 1e6, busy(sim, 5 * NS_PER_S));
        g_assert_cmpfloat(busy(sim, 5 * NS_PER_S), >, 0.9);
        sim_free(sim);
    }
}

/* How many of some looks at @tenant's leases found that they began while others' work was there. */
static guint behind_others(struct simulation *sim, const struct sim_tenant *tenant, guint *leases)
{
    guint behind = 0;

    for (guint i = *leases = 0; i < 10000; i++) {
        sim_run(sim, 100 * NS_PER_US);
        if (sim->scheduler.lease.holder != tenant->slice)
            continue;
        ++*leases;
        behind += tenant->grant.others_until_ns > sim->scheduler.lease.granted_at;
    }
    return behind;
}

/*
 * A higher class does not wait for others' work to end, so it is told about it; loops take turns.
 */
static void test_behind(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *online = sim_add(sim, 100, NS_PER_MS), *offline = sim_add(sim, 100, BATCH);
    guint leases;

    online->slice->settings.priority = 8;
    online->burst = 1;
    online->period_ns = 13 * NS_PER_MS + 7 * NS_PER_US;
    offline->async = true;
    g_assert_cmpuint(behind_others(sim, online, &leases), >, leases * 9 / 10);
    g_assert_cmpuint(leases, >, 100);
    online->slice->settings.priority = 0;
    online->burst = 0;
    offline->async = false;
    sim_run(sim, NS_PER_S);
    g_assert_cmpuint(behind_others(sim, online, &leases), ==, 0);
    g_assert_cmpuint(leases, >, 100);
    sim_free(sim);
}

/* Whatever the higher class does, each lower one gets something. */
static void test_floor(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *high = sim_add(sim, 100, BATCH);
    struct sim_tenant *low = sim_add(sim, 100, BATCH), *lowest = sim_add(sim, 100, BATCH);

    high->async = low->async = lowest->async = true;
    high->slice->settings.priority = 2;
    low->slice->settings.priority = 1;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 20 * NS_PER_S);
    assert_near(sim_share(sim, low) + sim_share(sim, lowest), 0.05, 0.005);
    g_assert_cmpfloat(sim_share(sim, low), >, 0.02);
    g_assert_cmpfloat(sim_share(sim, lowest), >, 0.02);
    sim_free(sim);
}

/* A slice that is left alone has all of the GPU within 20 ms, and unmeasured. */
static void test_alone_again(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *stays = sim_add(sim, 30, BATCH), *leaves = sim_add(sim, 70, BATCH);

    stays->async = leaves->async = true;
    leaves->stop_ns = NS_PER_S;
    sim_run(sim, NS_PER_S - 10 * NS_PER_MS);
    g_assert_cmpint(stays->grant.mode, ==, GOVERNOR_MODE_METERED);
    sim_run(sim, 30 * NS_PER_MS);
    g_assert_cmpint(stays->grant.mode, ==, GOVERNOR_MODE_FREE);
    sim_reset_counts(sim);
    sim_run(sim, NS_PER_S);
    g_assert_cmpfloat(busy(sim, NS_PER_S), >, 0.99);
    /* And back: the first that the other submits is enough. */
    leaves->stop_ns = 0;
    sim_run(sim, NS_PER_MS);
    g_assert_cmpint(stays->grant.mode, ==, GOVERNOR_MODE_METERED);
    sim_run(sim, 100 * NS_PER_MS);
    sim_reset_counts(sim);
    sim_run(sim, 4 * NS_PER_S);
    assert_near(sim_share(sim, leaves), 0.7, 0.005);
    sim_free(sim);
}

/* A pause earns nothing that could be used up in one go afterwards. */
static void test_no_credit(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *steady = sim_add(sim, 50, BATCH), *returns = sim_add(sim, 50, BATCH);

    steady->async = returns->async = true;
    returns->start_ns = 5 * NS_PER_S;
    sim_run(sim, 5 * NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 100 * NS_PER_MS);
    assert_near(sim_share(sim, steady), 0.5, 0.05);
    sim_free(sim);
}

/*
 * Leases are long among slices that always have work; one that returns after a pause does not wait
 * for the end of one.
 */
static void test_returns(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *returns;

    for (unsigned i = 0; i < 2; i++)
        sim_add(sim, 50, BATCH)->async = true;
    returns = sim_add(sim, 50, BATCH);
    returns->burst = 1;
    returns->period_ns = 301 * NS_PER_MS;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 10 * NS_PER_S);
    g_test_message("worst %.1f ms", (double)returns->worst_ns / NS_PER_MS);
    g_assert_cmpuint(returns->done, >=, 33);
    g_assert_cmpuint(returns->worst_ns, <, 12 * NS_PER_MS);
    sim_free(sim);
}

static void test_changed_weight(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *one = sim_add(sim, 30, BATCH), *two = sim_add(sim, 70, BATCH);

    one->async = two->async = true;
    sim_run(sim, 3 * NS_PER_S);
    one->slice->settings.weight = 70;
    two->slice->settings.weight = 30;
    sim_run(sim, 50 * NS_PER_MS);
    sim_reset_counts(sim);
    sim_run(sim, 50 * NS_PER_MS + NS_PER_S);
    assert_near(sim_share(sim, one), 0.7, 0.01);
    sim_free(sim);
}

/*
 * Many short ones beside few long ones: each has its part of the time, and the GPU is busy except
 * in the pauses.
 */
static void test_tiny(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *tiny = sim_add(sim, 50, 20 * NS_PER_US), *big = sim_add(sim, 50, BATCH);

    tiny->async = big->async = true;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 10 * NS_PER_S);
    assert_near(sim_share(sim, tiny), 0.5, 0.01);
    /* One at a time, with a pause as long as its work: it holds the GPU for its part of the time at
     * most. */
    tiny->async = false;
    tiny->think_ns = 20 * NS_PER_US;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 10 * NS_PER_S);
    g_test_message("tiny %.4f busy %.4f", sim_share(sim, tiny), busy(sim, 10 * NS_PER_S));
    g_assert_cmpfloat(sim_share(sim, tiny), >, 0.2);
    g_assert_cmpfloat((double)big->done_ns / (10 * NS_PER_S), >, 0.45);
    sim_free(sim);
}

/* A holder that is stopped, with or without work on the GPU, holds up others for the grace only. */
static void test_stopped(void)
{
    for (unsigned i = 0; i < 10; i++) {
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
        struct sim_tenant *stops = sim_add(sim, 50, BATCH), *other = sim_add(sim, 50, BATCH);

        stops->async = i % 2;
        other->async = true;
        sim_run(sim, NS_PER_S + i * 700 * NS_PER_US);
        stops->stopped = true;
        sim_reset_counts(sim);
        sim_run(sim, 200 * NS_PER_MS);
        g_assert_cmpuint(other->worst_ns, <, 40 * NS_PER_MS);
        g_assert_cmpuint(other->done_ns, >, 170 * NS_PER_MS);
        stops->stopped = false;
        sim_free(sim);
    }
}

/* A lease whose holder waits for somebody else is the other's. */
static void test_stalled(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *stalls = sim_add(sim, 50, BATCH), *other = sim_add(sim, 50, BATCH);

    stalls->async = other->async = true;
    sim_run(sim, NS_PER_S);
    stalls->stopped = true;
    stalls->usage.began_at_ns = sim->now;
    stalls->usage.in_flight_ns = 100 * NS_PER_MS;
    stalls->usage.waiting = 0;
    sim->scheduler.lease = (struct lease){.state = LEASE_OPEN,
                                          .holder = stalls->slice,
                                          .limit_ns = UINT64_MAX,
                                          .granted_at = sim->now};
    /* What it had queued ends. */
    sim_run(sim, 3 * BATCH);
    sim_reset_counts(sim);
    sim_run(sim, NS_PER_MS);
    g_assert_cmpuint(other->in_flight, ==, 0);
    scheduler_stalled(&stalls->member, sim->now);
    sim_run(sim, 10 * NS_PER_MS);
    g_assert_cmpuint(other->done_ns, >, 6 * NS_PER_MS);
    sim_free(sim);
}

/*
 * The report of it comes before any look at the submission that it is about, and perhaps at the end
 * of an earlier one: it holds all the same, for the member does not repeat it.
 */
static void check_stalled_at_once(bool ended_before)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *stalls = sim_add(sim, 50, BATCH), *other = sim_add(sim, 50, BATCH);

    stalls->async = other->async = true;
    sim_run(sim, NS_PER_S);
    while (sim->scheduler.lease.holder != stalls->slice)
        sim_run(sim, NS_PER_MS);
    stalls->stopped = true;
    /* Since the last look. */
    stalls->usage.submissions++;
    stalls->usage.began_at_ns = sim->now;
    stalls->usage.in_flight_ns = BATCH;
    stalls->usage.waiting = 0;
    if (ended_before) {
        stalls->usage.gpu_ns += BATCH;
        stalls->usage.ended_at_ns = sim->now;
    }
    other->usage.waiting = 1;
    other->usage.in_flight_ns = 0;
    scheduler_stalled(&stalls->member, sim->now);
    scheduler_run(&sim->scheduler, sim->now);
    sim->now += 3 * NS_PER_MS;
    scheduler_run(&sim->scheduler, sim->now);
    g_assert_true(stalls->member.stalled);
    g_assert_true(sim->scheduler.lease.holder == other->slice);
    /* What is submitted after it has not stalled. */
    stalls->usage.submissions++;
    scheduler_run(&sim->scheduler, sim->now);
    g_assert_false(stalls->member.stalled);
    sim_free(sim);
}

static void test_stalled_at_once(void)
{
    check_stalled_at_once(false);
    check_stalled_at_once(true);
}

/* As turn.c of the member counts. */
static bool may_submit(const struct simulation *sim, const struct sim_tenant *tenant)
{
    uint64_t running = sim->now - MAX(tenant->usage.began_at_ns, tenant->usage.ended_at_ns);

    return tenant->usage.gpu_ns + MAX(tenant->usage.in_flight_ns, running) < tenant->grant.limit_ns;
}

/*
 * The event that its work waits for comes from other work of the same process, which waits for a
 * lease. The member counts the time for which the first has been in flight: its lease is beyond
 * that, however long it is, and stays so while the other waits.
 */
static void test_waits_beside_stalled(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *stalls = sim_add(sim, 50, BATCH), *other = sim_add(sim, 50, BATCH);

    stalls->async = other->async = true;
    sim_run(sim, NS_PER_S);
    sim->now += 40 * NS_PER_MS;
    stalls->stopped = other->stopped = true;
    stalls->usage.began_at_ns = stalls->usage.ended_at_ns = sim->now - 40 * NS_PER_MS;
    stalls->usage.in_flight_ns = BATCH;
    stalls->usage.waiting = other->usage.waiting = 1;
    other->usage.in_flight_ns = 0;
    other->usage.ended_at_ns = sim->now;
    other->slice->virtual_ns += 100 * NS_PER_MS;
    sim->scheduler.lease = (struct lease){.state = LEASE_NONE};
    scheduler_stalled(&stalls->member, sim->now);
    scheduler_run(&sim->scheduler, sim->now);
    g_assert_true(sim->scheduler.lease.holder == stalls->slice);
    g_assert_true(may_submit(sim, stalls));
    sim->now += NS_PER_MS;
    scheduler_run(&sim->scheduler, sim->now);
    g_assert_true(may_submit(sim, stalls));
    /* The report is repeated, and is no reason to take the lease away. */
    scheduler_stalled(&stalls->member, sim->now);
    scheduler_run(&sim->scheduler, sim->now);
    g_assert_true(sim->scheduler.lease.holder == stalls->slice);
    g_assert_cmpuint(sim->scheduler.lease.granted_at, <, sim->now);
    g_assert_true(may_submit(sim, stalls));
    sim_free(sim);
}

/*
 * A member that always reports that its work has just begun, or that much is in flight, does not
 * keep the GPU.
 */
static void test_liar(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *liar = sim_add(sim, 50, BATCH), *other = sim_add(sim, 50, BATCH);

    liar->async = other->async = true;
    sim_run(sim, NS_PER_S);
    liar->stopped = true;
    sim_reset_counts(sim);
    for (unsigned i = 0; i < 1000; i++) {
        liar->usage.ended_at_ns = UINT64_MAX;
        liar->usage.in_flight_ns = i % 2 ? NS_PER_MS : 5 * NS_PER_MS;
        liar->usage.waiting = 1;
        liar->usage.submissions++;
        scheduler_heard(&liar->member);
        sim_run(sim, NS_PER_MS);
    }
    g_test_message("beside the liar: %.3f", busy(sim, NS_PER_S));
    g_assert_cmpfloat((double)other->done_ns / NS_PER_S, >, 0.3);
    sim_free(sim);
}

/* Two slices of @batch_ns whose members take @wake_ns to react: the GPU is busy all the same. */
static void check_slow_wakes(uint64_t batch_ns, uint64_t wake_ns, double least)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);

    for (unsigned i = 0; i < 2; i++) {
        struct sim_tenant *tenant = sim_add(sim, 50, batch_ns);

        tenant->async = true;
        tenant->wake_ns = wake_ns;
    }
    sim_run(sim, 10 * NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 60 * NS_PER_S);
    g_test_message("batches of %.0f ms, wake-ups of %.1f ms: busy %.3f",
                   (double)batch_ns / NS_PER_MS, (double)wake_ns / NS_PER_MS,
                   busy(sim, 60 * NS_PER_S));
    g_assert_cmpfloat(busy(sim, 60 * NS_PER_S), >, least);
    assert_near(sim_share(sim, &sim->tenants[0]), 0.5, 0.003);
    sim_free(sim);
}

static void test_slow_wakes(void)
{
    check_slow_wakes(250 * NS_PER_MS, 40 * NS_PER_MS, 0.99);
    check_slow_wakes(20 * NS_PER_MS, 2 * NS_PER_MS, 0.99);
    check_slow_wakes(2 * NS_PER_MS, NS_PER_MS, 0.95);
}

static void add_tests(void)
{
    g_test_add_func("/governor/scheduler/slow-wakes", test_slow_wakes);
    g_test_add_func("/governor/scheduler/cap", test_cap);
    g_test_add_func("/governor/scheduler/cap-leases", test_cap_leases);
    g_test_add_func("/governor/scheduler/cap-beside", test_cap_beside);
    g_test_add_func("/governor/scheduler/promise", test_promise);
    g_test_add_func("/governor/scheduler/promise-weight", test_promise_weight);
    g_test_add_func("/governor/scheduler/promise-first", test_promise_first);
    g_test_add_func("/governor/scheduler/soft-cap", test_soft_cap);
    g_test_add_func("/governor/scheduler/policies", test_policies);
    g_test_add_func("/governor/scheduler/priority", test_priority);
    g_test_add_func("/governor/scheduler/behind", test_behind);
    g_test_add_func("/governor/scheduler/siblings", test_siblings);
    g_test_add_func("/governor/scheduler/floor", test_floor);
    g_test_add_func("/governor/scheduler/alone-again", test_alone_again);
    g_test_add_func("/governor/scheduler/no-credit", test_no_credit);
    g_test_add_func("/governor/scheduler/returns", test_returns);
    g_test_add_func("/governor/scheduler/changed-weight", test_changed_weight);
    g_test_add_func("/governor/scheduler/tiny", test_tiny);
    g_test_add_func("/governor/scheduler/stopped", test_stopped);
    g_test_add_func("/governor/scheduler/stalled", test_stalled);
    g_test_add_func("/governor/scheduler/stalled-at-once", test_stalled_at_once);
    g_test_add_func("/governor/scheduler/waits-beside-stalled", test_waits_beside_stalled);
    g_test_add_func("/governor/scheduler/liar", test_liar);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(share_cases); i++) {
        g_autofree char *path = g_strconcat("/governor/shares/", share_cases[i].name, NULL);

        g_test_add_data_func(path, &share_cases[i], test_shares);
    }
    add_tests();
    return g_test_run();
}
