// SPDX-License-Identifier: MIT
/*
 * When a slice whose work is late may make a submission without a lease. The pages are the test's
 * own, and the work ends only when the test says so.
 */
#include "simulation.h"

#define STEP_NS (NS_PER_MS / 4)
#define NEVER   UINT64_MAX
/* A submission, as long as those before it were. */
#define BATCH (NS_PER_MS)

static struct sim_tenant *add(struct simulation *sim)
{
    struct sim_tenant *tenant = sim_add(sim, 50, BATCH);

    tenant->stopped = true;
    return tenant;
}

/* For a second, in which it has used so much. */
static void pass_second(struct simulation *sim, struct sim_tenant *tenant, uint64_t used_ns)
{
    scheduler_run(&sim->scheduler, sim->now);
    sim->now += NS_PER_S;
    tenant->usage.submissions = used_ns / BATCH;
    tenant->usage.gpu_ns = used_ns;
    tenant->usage.ended_at_ns = sim->now;
    scheduler_run(&sim->scheduler, sim->now);
}

static void begin(const struct simulation *sim, struct sim_tenant *tenant)
{
    tenant->usage.submissions++;
    tenant->usage.began_at_ns = sim->now;
    tenant->usage.in_flight_ns = BATCH;
}

static void wait_for_lease(const struct simulation *sim, struct sim_tenant *tenant, bool beside)
{
    tenant->usage.waiting_at_ns = sim->now;
    tenant->usage.waiting = 1 | (uint64_t)beside << GOVERNOR_BESIDE_SHIFT;
}

/* A slice with a hard cap of 20 % may use so much in the first second: it begins with 20 ms. */
#define ALLOWED_NS (232 * NS_PER_MS)

static struct sim_tenant *add_capped(struct simulation *sim, uint64_t used_ns)
{
    struct sim_tenant *tenant = add(sim);

    tenant->slice->settings.cap = 20;
    tenant->slice->settings.hard = true;
    pass_second(sim, tenant, used_ns);
    return tenant;
}

/* How long after the begin of its work it gets a pass. */
static uint64_t pass_after(struct simulation *sim, const struct sim_tenant *tenant,
                           uint64_t most_ns)
{
    uint64_t begun_at = sim->now;

    while (sim->now < begun_at + most_ns) {
        scheduler_run(&sim->scheduler, sim->now);
        if (tenant->grant.passes)
            return sim->now - begun_at;
        sim->now += STEP_NS;
    }
    return NEVER;
}

static uint64_t capped_pass(uint64_t used_ns, bool beside)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *tenant = add_capped(sim, used_ns);
    uint64_t after;

    begin(sim, tenant);
    wait_for_lease(sim, tenant, beside);
    after = pass_after(sim, tenant, 200 * NS_PER_MS);
    g_test_message("%d ms used: after %.2f ms", (int)(used_ns / NS_PER_MS), (double)after / 1e6);
    sim_free(sim);
    return after;
}

/* 2 ms after the end that it said; a quarter of what it owes later. */
static void test_debt(void)
{
    uint64_t none = capped_pass(ALLOWED_NS, true),
             some = capped_pass(ALLOWED_NS + 80 * NS_PER_MS, true);

    g_assert_cmpuint(none, >=, BATCH + 2 * NS_PER_MS);
    g_assert_cmpuint(none, <, BATCH + 4 * NS_PER_MS);
    g_assert_cmpuint(some, >, none + 15 * NS_PER_MS);
    g_assert_cmpuint(some, <, none + 25 * NS_PER_MS);
}

/* What waits would have to come after the work. */
static void test_behind(void)
{
    g_assert_cmpuint(capped_pass(ALLOWED_NS, false), ==, NEVER);
}

/* No other than that, while the work goes on: a quarter of the time for which it is late. */
static void test_again(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *tenant = add_capped(sim, ALLOWED_NS);

    begin(sim, tenant);
    wait_for_lease(sim, tenant, true);
    for (uint64_t end = sim->now + NS_PER_S; sim->now < end; sim->now += STEP_NS)
        scheduler_run(&sim->scheduler, sim->now);
    g_test_message("%u passes in a second", tenant->grant.passes);
    g_assert_cmpuint(tenant->grant.passes, >, 10);
    g_assert_cmpuint(tenant->grant.passes, <, 40);
    sim_free(sim);
}

/* Whoever has late work again and again takes no more than its minimum from a higher class. */
static void test_outranked(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *low = add(sim), *high = add(sim);
    unsigned passes = 0;

    high->slice->settings.priority = 1;
    for (uint64_t end = sim->now + NS_PER_S; sim->now < end; sim->now += STEP_NS) {
        begin(sim, high);
        wait_for_lease(sim, high, false);
        if (!low->usage.waiting || low->grant.passes != passes) {
            passes = low->grant.passes;
            low->usage.ended_at_ns = sim->now;
            begin(sim, low);
            wait_for_lease(sim, low, true);
        }
        scheduler_run(&sim->scheduler, sim->now);
    }
    g_test_message("%u passes in a second", low->grant.passes);
    g_assert_cmpuint(low->grant.passes, >, 0);
    /* 5 % of the second, by 2 ms, and two that were saved up. */
    g_assert_cmpuint(low->grant.passes, <=, 27);
    sim_free(sim);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/passes/debt", test_debt);
    g_test_add_func("/governor/passes/behind", test_behind);
    g_test_add_func("/governor/passes/again", test_again);
    g_test_add_func("/governor/passes/outranked", test_outranked);
    return g_test_run();
}
