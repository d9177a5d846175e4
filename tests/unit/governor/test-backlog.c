// SPDX-License-Identifier: MIT
/* What a member has queued while it is free: known, bounded, and paid for when another comes. */
#include "simulation.h"

#define BATCH (2 * NS_PER_MS)

/* One that would queue 500 ms. */
static struct sim_tenant *add_lone(struct simulation *sim, uint64_t batch_ns, bool tracked)
{
    struct sim_tenant *lone = sim_add(sim, 100, batch_ns);

    lone->async = true;
    lone->ahead = (unsigned)(500 * NS_PER_MS / batch_ns);
    lone->tracked = tracked;
    return lone;
}

static double queued_ms(const struct simulation *sim, const struct sim_tenant *tenant)
{
    unsigned number = (unsigned)(tenant - sim->tenants);

    return (double)(card_waiting(&sim->card, CARD_COMPUTE, number) * tenant->batch_ns) / 1e6;
}

/* The longest queue in the next @ns. */
static double longest(struct simulation *sim, const struct sim_tenant *tenant, uint64_t ns)
{
    double most = 0;

    for (uint64_t i = 0; i < ns; i += NS_PER_MS) {
        sim_run(sim, NS_PER_MS);
        most = MAX(most, queued_ms(sim, tenant));
    }
    return most;
}

/* Alone 200 ms; beside members that do nothing, 32. Neither costs the lone one any time. */
static void test_bound(void)
{
    static const uint64_t batches[] = {NS_PER_MS, BATCH, 7 * NS_PER_MS};

    for (gsize i = 0; i < G_N_ELEMENTS(batches); i++) {
        struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
        struct sim_tenant *lone = add_lone(sim, batches[i], true), *other;
        double alone, beside;

        sim_run(sim, NS_PER_S);
        g_assert_cmpint(lone->grant.mode, ==, GOVERNOR_MODE_FREE);
        alone = longest(sim, lone, NS_PER_S);
        other = sim_add(sim, 100, BATCH);
        other->start_ns = 3600 * NS_PER_S;
        sim_run(sim, 300 * NS_PER_MS);
        sim_reset_counts(sim);
        beside = longest(sim, lone, NS_PER_S);
        g_test_message("of %.0f ms: %.0f ms alone, %.0f ms beside a member",
                       (double)batches[i] / 1e6, alone, beside);
        g_assert_cmpfloat(alone, >, 150);
        g_assert_cmpfloat(alone, <, 245);
        g_assert_cmpfloat(beside, >, 15);
        /* As far apart as markers are, or one submission. */
        g_assert_cmpfloat(beside, <, 38 + (double)batches[i] / 1e6);
        g_assert_cmpfloat((double)sim->busy_ns / NS_PER_S, >, 0.99);
        sim_free(sim);
    }
}

/* How long the first submission of another takes, when one that would queue 500 ms is at work. */
static double delay_ms(bool tracked)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *lone = add_lone(sim, BATCH, tracked), *other = sim_add(sim, 100, BATCH);
    double delay;

    other->burst = 1;
    other->period_ns = 3600 * NS_PER_S;
    other->start_ns = 2 * NS_PER_S;
    lone->member.changed = false;
    sim_run(sim, 3 * NS_PER_S);
    g_assert_cmpuint(other->done, ==, 1);
    delay = (double)other->worst_ns / 1e6;
    sim_free(sim);
    return delay;
}

static void test_newcomer(void)
{
    double tracked = delay_ms(true), untracked = delay_ms(false);

    g_test_message("%.1f ms, without markers %.1f ms", tracked, untracked);
    g_assert_cmpfloat(tracked, <=, 40);
    g_assert_cmpfloat(untracked, >, 400);
}

/* What others had to wait for is charged: the newcomer catches up with it. */
static void test_charged(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *lone = add_lone(sim, BATCH, true), *other = sim_add(sim, 100, BATCH);
    double before, charged;

    other->async = true;
    other->start_ns = 2 * NS_PER_S;
    sim_run(sim, 2 * NS_PER_S);
    g_assert_cmpint(lone->grant.mode, ==, GOVERNOR_MODE_FREE);
    before = queued_ms(sim, lone);
    charged = (double)lone->slice->gpu_ns;
    sim_run(sim, NS_PER_MS);
    charged = ((double)lone->slice->gpu_ns - charged) / 1e6;
    g_assert_cmpint(lone->grant.mode, ==, GOVERNOR_MODE_METERED);
    g_test_message("%.1f ms queued, charged %.1f ms", before, charged);
    g_assert_cmpfloat(ABS(charged - before), <, 6);
    sim_reset_counts(sim);
    sim_run(sim, NS_PER_S);
    g_assert_cmpfloat(ABS(sim_share(sim, other) - 0.5), <, 0.02);
    sim_free(sim);
}

/* A pause before a burst is not taken for time in which the burst was worked on. */
static void test_after_pause(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *lone = add_lone(sim, BATCH, true), *other = sim_add(sim, 100, BATCH);

    other->start_ns = 3600 * NS_PER_S;
    lone->burst = 250;
    lone->period_ns = 2 * NS_PER_S;
    sim_run(sim, 6 * NS_PER_S - 100 * NS_PER_MS);
    g_assert_cmpfloat(queued_ms(sim, lone), ==, 0);
    g_assert_cmpfloat(longest(sim, lone, NS_PER_S), <, 40);
    sim_free(sim);
}

/* Markers of several queues may pass in another order: each for what was before it on its own. */
static void test_order(void)
{
    struct backlog backlog;

    backlog_init(&backlog);
    g_assert_true(backlog_place(&backlog, 4, 0, 1000, 100));
    g_assert_true(backlog_place(&backlog, 8, 0, 1000, 200));
    backlog_pass(&backlog, 8, 300);
    g_assert_cmpuint(backlog.done, ==, 4);
    backlog_pass(&backlog, 4, 500);
    g_assert_cmpuint(backlog.done, ==, 8);
    g_assert_false(backlog_waits(&backlog));
    /* Of eight more submissions, one was on the queue of the marker. */
    g_assert_true(backlog_place(&backlog, 16, 1, 1000, 550));
    g_assert_cmpuint(backlog.done, ==, 8);
    backlog_pass(&backlog, 16, 560);
    g_assert_cmpuint(backlog.done, ==, 16);
    for (uint64_t i = 0; i < BACKLOG_MARKERS; i++)
        g_assert_true(backlog_place(&backlog, 20 + i, 0, 1000, 600));
    g_assert_false(backlog_place(&backlog, 100, 0, 1000, 600));
    /* A stuck one is work that has been there for so long. */
    g_assert_cmpuint(backlog_ns(&backlog, 60, 600 + NS_PER_S), >=, NS_PER_S);
}

/* What does not move waits for something else: it is not waited for again. */
static void test_give_up(void)
{
    struct backlog backlog;
    uint64_t now = NS_PER_S;

    backlog_init(&backlog);
    g_assert_true(backlog_place(&backlog, 4, 0, 32 * NS_PER_MS, now));
    g_assert_true(backlog_is_full(&backlog, 8, 32 * NS_PER_MS, now));
    g_assert_cmpuint(backlog_patience_ns(&backlog, 8, now), ==, NS_PER_S);
    backlog_pass(&backlog, 4, now += 4 * NS_PER_MS);
    g_assert_true(backlog_place(&backlog, 40, 0, 32 * NS_PER_MS, now));
    g_assert_true(backlog_is_full(&backlog, 44, 32 * NS_PER_MS, now));
    g_assert_cmpuint(backlog_patience_ns(&backlog, 44, now), ==, 100 * NS_PER_MS);
    now += 100 * NS_PER_MS;
    backlog_give_up(&backlog, now);
    g_assert_false(backlog_is_full(&backlog, 44, 32 * NS_PER_MS, now));
    g_assert_cmpuint(backlog_ns(&backlog, 44, now), ==, 4 * NS_PER_MS);
    /* It comes after all. */
    backlog_pass(&backlog, 40, now + NS_PER_MS);
    g_assert_cmpuint(backlog.done, ==, 40);
    g_assert_cmpuint(backlog.mean_ns, ==, NS_PER_MS);
}

/* Behind what a marker was to be placed is behind the next one; nothing has ended by it. */
static void test_cancelled(void)
{
    struct backlog backlog;

    backlog_init(&backlog);
    g_assert_true(backlog_place(&backlog, 10, 0, 200 * NS_PER_MS, NS_PER_S));
    backlog_cancel(&backlog, 10);
    g_assert_false(backlog_waits(&backlog));
    g_assert_cmpuint(backlog.done, ==, 0);
    g_assert_cmpuint(backlog.mean_ns, ==, 0);
    g_assert_true(backlog_place(&backlog, 14, 0, 200 * NS_PER_MS, NS_PER_S));
    g_assert_true(backlog_place(&backlog, 18, 0, 200 * NS_PER_MS, NS_PER_S));
    backlog_cancel(&backlog, 18);
    backlog_pass(&backlog, 14, NS_PER_S + 14 * NS_PER_MS);
    g_assert_cmpuint(backlog.done, ==, 14);
    g_assert_cmpuint(backlog.mean_ns, ==, NS_PER_MS);
}

/* What waits for something else than the GPU is waited for once, not at each marker behind it. */
static void test_given_up_once(void)
{
    struct backlog backlog;

    backlog_init(&backlog);
    g_assert_true(backlog_place(&backlog, 4, 0, 200 * NS_PER_MS, NS_PER_S));
    g_assert_true(backlog_is_full(&backlog, 8, 200 * NS_PER_MS, NS_PER_S));
    backlog_give_up(&backlog, 2 * NS_PER_S);
    for (uint64_t number = 8; number < 100; number += 4) {
        g_assert_true(backlog_place(&backlog, number, 0, 200 * NS_PER_MS, 2 * NS_PER_S));
        g_assert_false(backlog_is_full(&backlog, number + 4, 200 * NS_PER_MS, 3 * NS_PER_S));
    }
    /* It has come. */
    backlog_pass(&backlog, 8, 4 * NS_PER_S);
    g_assert_true(backlog_is_full(&backlog, 100, 200 * NS_PER_MS, 4 * NS_PER_S));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/backlog/order", test_order);
    g_test_add_func("/governor/backlog/give-up", test_give_up);
    g_test_add_func("/governor/backlog/bound", test_bound);
    g_test_add_func("/governor/backlog/newcomer", test_newcomer);
    g_test_add_func("/governor/backlog/charged", test_charged);
    g_test_add_func("/governor/backlog/after-pause", test_after_pause);
    g_test_add_func("/governor/backlog/given-up-once", test_given_up_once);
    g_test_add_func("/governor/backlog/cancelled", test_cancelled);
    return g_test_run();
}
