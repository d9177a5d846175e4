// SPDX-License-Identifier: MIT
/* When the scheduler looks by itself, and who need not send a message before that. */
#include "simulation.h"

#define BATCH (2 * NS_PER_MS)

static struct simulation *sim_contended(unsigned count, bool async)
{
    struct simulation *sim = g_new(struct simulation, 1);

    sim_init(sim, POLICY_SHARES);
    for (unsigned i = 0; i < count; i++) {
        struct sim_tenant *tenant = sim_add(sim, 50, BATCH);

        tenant->async = async;
        tenant->think_ns = 50 * NS_PER_US;
    }
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    return sim;
}

/* Each look takes a turn on a processor. With one for each message there were 1.5 for each
 * submission of loops, 2 of pipelines. */
static void test_few(void)
{
    static const unsigned counts[] = {2, 4, 8};

    for (gsize i = 0; i < 2 * G_N_ELEMENTS(counts); i++) {
        unsigned count = counts[i / 2];
        struct simulation *sim = sim_contended(count, i % 2);
        double looks, busy;

        sim_run(sim, 2 * NS_PER_S);
        looks = (double)sim->looks * BATCH / (2.0 * NS_PER_S);
        busy = (double)sim->busy_ns / (2.0 * NS_PER_S);
        g_test_message("%u %s: %.2f looks for each, busy %.4f", count,
                       i % 2 ? "pipelines" : "loops", looks, busy);
        g_assert_cmpfloat(looks, <, i % 2 ? 0.3 : 1.3);
        g_assert_cmpfloat(busy, >, 0.97);
        /* Nobody pauses: leases are long. */
        g_assert_cmpuint(sim->scheduler.paused_at, <, sim->now - 2 * NS_PER_S);
        sim_free(sim);
    }
}

/*
 * A member that returns at once each time is not looked at in between; one that rests now and then
 * is, after a wait for it was in vain.
 */
static void test_silent(void)
{
    for (unsigned rests = 0; rests < 2; rests++) {
        struct simulation *sim = sim_contended(2, false);
        double looks, busy;

        for (unsigned i = 0; i < 2; i++) {
            sim->tenants[i].think_ns = 10 * NS_PER_US;
            sim->tenants[i].think_jitter_ns = rests ? 2 * BATCH : 0;
        }
        sim_run(sim, NS_PER_S);
        sim_reset_counts(sim);
        sim_run(sim, 2 * NS_PER_S);
        looks = (double)sim->looks / (double)(sim->tenants[0].done + sim->tenants[1].done);
        busy = (double)sim->busy_ns / (2.0 * NS_PER_S);
        g_test_message("%s: %.2f looks for each, busy %.4f", rests ? "rests" : "loops", looks,
                       busy);
        if (rests)
            g_assert_cmpfloat(busy, >, 0.75);
        else
            g_assert_cmpfloat(looks, <, 0.3);
        sim_free(sim);
    }
}

/* The holder of the lease, at work, and a member without work. */
static struct sim_tenant *other_than_holder(struct simulation *sim)
{
    g_assert_nonnull(sim->scheduler.lease.holder);
    return sim->scheduler.lease.holder == sim->tenants[0].slice ? &sim->tenants[1]
                                                                : &sim->tenants[0];
}

/* Runs until there is a lease with time left. */
static void sim_run_to_lease(struct simulation *sim)
{
    do
        sim_run(sim, 100 * NS_PER_US);
    while (sim->scheduler.lease.state != LEASE_OPEN || !sim->scheduler.lease.looks_at);
}

/*
 * A waiting member is told until when it need not report that. A silent one and one of a higher
 * class are not: a look would not notice the one, and comes too late for the other.
 */
static void test_who(void)
{
    struct simulation *sim = sim_contended(3, true);
    struct sim_tenant *other;

    sim_run_to_lease(sim);
    other = other_than_holder(sim);
    g_assert_cmpuint(other->grant.looks_at_ns, >, sim->now);
    g_assert_cmpuint(other->grant.looks_at_ns, ==, sim->scheduler.lease.looks_at);
    other->member.silent = true;
    other->usage.waiting = 0;
    sim->call_at = scheduler_run(&sim->scheduler, sim->now);
    g_assert_cmpuint(other->grant.looks_at_ns, ==, 0);
    other->member.silent = false;
    other->slice->settings.priority = 1;
    sim->call_at = scheduler_run(&sim->scheduler, sim->now);
    g_assert_cmpuint(other->grant.looks_at_ns, ==, 0);
    sim_free(sim);
}

/* A member that is not alone in wanting the GPU, but has it for itself, is not looked at. */
static void test_alone(void)
{
    struct simulation *sim = sim_contended(2, true);

    sim->tenants[0].stop_ns = 1;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, NS_PER_S);
    g_assert_cmpuint(sim->looks, <, 3);
    g_assert_cmpuint(sim->tenants[1].grant.looks_at_ns, ==, 0);
    sim_free(sim);
}

/*
 * A higher class requests what it wants, and reports when it has had it: hardly a look more. A
 * lower one without others beside it need not be looked at.
 */
static void test_below(void)
{
    static const uint64_t periods[] = {13 * NS_PER_MS, 40 * NS_PER_MS};

    for (gsize i = 0; i < G_N_ELEMENTS(periods); i++) {
        struct simulation *sim = g_new(struct simulation, 1);
        struct sim_tenant *online, *offline;
        double looks, busy;

        sim_init(sim, POLICY_SHARES);
        online = sim_add(sim, 100, BATCH);
        online->slice->settings.priority = 8;
        online->burst = 1;
        online->period_ns = periods[i] + 7 * NS_PER_US;
        offline = sim_add(sim, 100, 5 * BATCH);
        offline->async = true;
        sim_run(sim, NS_PER_S);
        sim_reset_counts(sim);
        sim_run(sim, 10 * NS_PER_S);
        looks = (double)sim->looks / (double)online->done;
        busy = (double)sim->busy_ns / (10.0 * NS_PER_S);
        g_test_message("every %.0f ms: %.2f looks for each, busy %.4f", (double)periods[i] / 1e6,
                       looks, busy);
        g_assert_cmpfloat(looks, <, i ? 3.5 : 2.5);
        g_assert_cmpfloat(busy, >, 0.98);
        sim_free(sim);
    }
}

/*
 * A submission was held back by the estimates of earlier ones, which turn out to be shorter: the
 * waiting thread sleeps on its grant, and must be woken.
 */
static void test_long_estimate(void)
{
    struct simulation *sim = sim_contended(2, true);
    struct lease *lease = &sim->scheduler.lease;
    struct sim_tenant *holder;
    struct governor_class_usage *usage;

    sim_run_to_lease(sim);
    holder = lease->holder == sim->tenants[0].slice ? &sim->tenants[0] : &sim->tenants[1];
    usage = &holder->usage;
    usage->began_at_ns = sim->now;
    usage->in_flight_ns = 0;
    usage->gpu_ns = lease->limit_ns - NS_PER_MS;
    usage->ended_at_ns = sim->now + 1;
    usage->waiting = 1;
    other_than_holder(sim)->usage.waiting = 1;
    holder->member.changed = false;
    scheduler_run(&sim->scheduler, sim->now + 1);
    g_assert_true(lease->holder == holder->slice);
    g_assert_true(holder->member.changed);
    g_assert_cmpuint(holder->grant.limit_ns, >, usage->gpu_ns);
    sim_free(sim);
}

/* Work of both is late: one's takes longer than it says, and the other's is behind it. */
static void test_late(void)
{
    struct simulation *sim = g_new(struct simulation, 1);
    struct sim_tenant *late, *other;
    double looks;

    sim_init(sim, POLICY_SHARES);
    late = sim_add(sim, 20, 50 * NS_PER_MS);
    other = sim_add(sim, 80, BATCH);
    late->estimate_ns = NS_PER_MS;
    late->async = other->async = true;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 5 * NS_PER_S);
    looks = (double)sim->looks / 5;
    g_test_message("%.0f looks a second", looks);
    g_assert_cmpfloat(looks, <, 1500);
    sim_free(sim);
}

#define CONNECTIONS 512

struct idle {
    struct sched_member member;
    struct governor_class_grant grant;
    struct governor_class_usage usage;
};

static struct idle *idle_new(const struct simulation *sim, struct sched_slice *slice)
{
    struct idle *idle = g_new0(struct idle, CONNECTIONS);

    for (unsigned i = 0; i < CONNECTIONS; i++) {
        idle[i].member.grant = &idle[i].grant;
        idle[i].member.usage = &idle[i].usage;
        scheduler_add_member(slice, &idle[i].member, sim->now);
    }
    return idle;
}

static void idle_free(struct simulation *sim, struct idle *idle)
{
    for (unsigned i = 0; i < CONNECTIONS; i++)
        scheduler_remove_member(&sim->scheduler, &idle[i].member, sim->now);
    g_free(idle);
}

/*
 * Looks for others do not come to members that have only a connection, and those are there again
 * when they say so, or when they work without a word.
 */
static void test_resting(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *one = sim_add(sim, 50, BATCH), *two = sim_add(sim, 50, BATCH);
    struct sched_slice *slice = scheduler_add_slice(&sim->scheduler, &one->settings);
    struct idle *idle = idle_new(sim, slice);
    uint64_t looked;

    one->async = two->async = true;
    sim_run(sim, 3 * NS_PER_S);
    sim->looks = 0;
    looked = sim->scheduler.looked;
    sim_run(sim, NS_PER_S);
    looked = sim->scheduler.looked - looked;
    g_test_message("%d looks at %d members", (int)sim->looks, (int)looked);
    g_assert_cmpuint(looked, <=, (2 + CONNECTIONS / 16) * sim->looks);
    g_assert_cmpuint(slice_members(slice), ==, CONNECTIONS);
    /* It waits, and says so. */
    idle[7].usage.waiting = 1;
    scheduler_heard(&idle[7].member);
    for (unsigned i = 0; i < 50 && !idle[7].grant.limit_ns; i++)
        sim_run(sim, NS_PER_MS);
    g_assert_cmpuint(idle[7].grant.limit_ns, >, 0);
    /* Its work begins, which was deferred. */
    idle[9].usage.submissions = 1;
    idle[9].usage.in_flight_ns = NS_PER_MS;
    idle[9].usage.began_at_ns = sim->now;
    sim_run(sim, 200 * NS_PER_MS);
    g_assert_false(idle[9].member.rests);
    idle_free(sim, idle);
    sim_free(sim);
}

/* None of them rests while its slice has the GPU for itself, because it would send no message. */
static void test_resting_free(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_IN_ORDER);
    struct sim_tenant *stays = sim_add(sim, 50, BATCH), *leaves = sim_add(sim, 50, BATCH);
    struct idle *idle = idle_new(sim, stays->slice);

    stays->async = leaves->async = true;
    leaves->stop_ns = 3 * NS_PER_S;
    sim_run(sim, 2 * NS_PER_S);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        g_assert_true(idle[i].member.rests && idle[i].grant.mode == GOVERNOR_MODE_METERED);
    sim_run(sim, 2 * NS_PER_S);
    g_assert_cmpint(stays->grant.mode, ==, GOVERNOR_MODE_FREE);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        g_assert_true(!idle[i].member.rests && idle[i].grant.mode == GOVERNOR_MODE_FREE);
    idle_free(sim, idle);
    sim_free(sim);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/looks/few", test_few);
    g_test_add_func("/governor/looks/silent", test_silent);
    g_test_add_func("/governor/looks/who", test_who);
    g_test_add_func("/governor/looks/alone", test_alone);
    g_test_add_func("/governor/looks/below", test_below);
    g_test_add_func("/governor/looks/long-estimate", test_long_estimate);
    g_test_add_func("/governor/looks/late", test_late);
    g_test_add_func("/governor/looks/resting", test_resting);
    g_test_add_func("/governor/looks/resting-free", test_resting_free);
    return g_test_run();
}
