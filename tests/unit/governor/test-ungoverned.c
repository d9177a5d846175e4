// SPDX-License-Identifier: MIT
/* What a slice's processes use that no member reports: the slice is charged for it. */
#include "live.h"
#include "simulation.h"

#include <signal.h>

#define BATCH (2 * NS_PER_MS)

static const char *const slices[] = {"a", "[slice]\nvram=1000000\n", "b", "[slice]\nvram=1000000\n",
                                     NULL};

/* Whether a member of slice a gets so much; it keeps nothing. */
static bool gets(const struct live *live, uint64_t bytes)
{
    g_autofree char *socket_path = live_socket(live, "a");
    GovernorMember *member = governor_member_get(socket_path, true);
    enum governor_memory memory;

    g_assert_nonnull(member);
    memory = governor_member_reserve(member, bytes, false);
    if (memory == GOVERNOR_MEMORY_DEVICE)
        governor_member_release(member, bytes, memory);
    governor_member_put(member);
    live_await(live, "a", "members", 0);
    return memory == GOVERNOR_MEMORY_DEVICE;
}

static void test_memory(void)
{
    struct live live;

    live_open(&live, slices);
    live_tell_ungoverned(&live, "a", "[ungoverned]\nmemory=600000\n");
    live_await(&live, "a", "vram_ungoverned", 600000);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 600000);
    g_assert_cmpint(live_status(&live, "b", "vram_used"), ==, 0);
    g_assert_false(gets(&live, 400001));
    g_assert_true(gets(&live, 400000));
    /* The memory exists already. */
    live_tell_ungoverned(&live, "a", "[ungoverned]\nmemory=5000000\n");
    live_await(&live, "a", "vram_used", 5000000);
    g_assert_false(gets(&live, 1));
    live_configure(&live, "a", "[slice]\nvram=6000000\n");
    live_await(&live, "a", "vram_limit", 6000000);
    g_assert_true(gets(&live, 1000000));
    live_tell_ungoverned(&live, "a", NULL);
    live_await(&live, "a", "vram_used", 0);
    live_close(&live);
}

/* What cannot be true changes nothing, and is logged. */
static void test_wrong(void)
{
    struct live live;

    live_open(&live, slices);
    live_tell_ungoverned(&live, "a", "[ungoverned]\nmemory=600000\n");
    live_await(&live, "a", "vram_used", 600000);
    live_tell_ungoverned(&live, "a", "[ungoverned]\nmemory=much\n");
    live_await_log(&live, "a.ungoverned: memory=much: must be a number");
    live_tell_ungoverned(&live, "a", "[ungoverned]\nmemory=9000000000000000000\n");
    live_await_log(&live, "no GPU has so much memory");
    live_tell_ungoverned(&live, "nobody", "[ungoverned]\nmemory=1\n");
    live_tell_ungoverned(&live, "b", "[ungoverned]\nmemory=1\n");
    live_await(&live, "b", "vram_used", 1);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 600000);
    live_close(&live);
}

/* The agent's counter goes on; what another arbiter has charged is not charged again. */
static void test_restart(void)
{
    struct live live;

    live_open(&live, slices);
    live_tell_ungoverned(&live, "a", "[ungoverned]\nmemory=600000\ngpu_ns=7000\n");
    live_await(&live, "a", "ungoverned_ns", 7000);
    g_assert_cmpint(live_status(&live, "a", "gpu_ns"), ==, 7000);
    live_kill_arbiter(&live, SIGKILL);
    live_start_arbiter(&live);
    live_await(&live, "a", "vram_used", 600000);
    g_assert_cmpint(live_status(&live, "a", "ungoverned_ns"), ==, 0);
    live_tell_ungoverned(&live, "a", "[ungoverned]\nmemory=600000\ngpu_ns=7500\n");
    live_await(&live, "a", "ungoverned_ns", 500);
    /* The agent has begun again. */
    live_tell_ungoverned(&live, "a", "[ungoverned]\ngpu_ns=40\n");
    live_await(&live, "a", "ungoverned_ns", 540);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 0);
    live_close(&live);
}

/* Work done by the first tenant and by all, in seconds of the GPU's time. */
static double run(struct simulation *sim, uint64_t ns)
{
    sim_reset_counts(sim);
    sim_run(sim, ns);
    g_test_message("%.3f s of %.3f s", (double)sim->tenants[0].done_ns / NS_PER_S,
                   (double)ns / NS_PER_S);
    return (double)sim->tenants[0].done_ns / NS_PER_S;
}

static void assert_near(double value, double wanted)
{
    g_assert_cmpfloat(value, >, wanted - 0.1);
    g_assert_cmpfloat(value, <, wanted + 0.1);
}

static struct simulation *two_tenants(void)
{
    struct simulation *sim = g_new(struct simulation, 1);

    sim_init(sim, POLICY_SHARES);
    sim_add(sim, 1, BATCH)->async = true;
    sim_add(sim, 1, BATCH)->async = true;
    sim_run(sim, NS_PER_S);
    return sim;
}

static void free_sim(struct simulation *sim)
{
    sim_clear(sim);
    g_free(sim);
}

/* Others have the GPU first for as long as it has had it. */
static void test_time(void)
{
    struct simulation *sim = two_tenants();

    assert_near(run(sim, 4 * NS_PER_S), 2);
    scheduler_charge(&sim->scheduler, sim->tenants[0].slice, 2 * NS_PER_S);
    assert_near(run(sim, 2 * NS_PER_S), 0);
    assert_near(run(sim, 4 * NS_PER_S), 2);
    free_sim(sim);
}

/* However much it was, its members come back. */
static void test_debt(void)
{
    struct simulation *sim = two_tenants();

    for (unsigned i = 0; i < 100; i++)
        scheduler_charge(&sim->scheduler, sim->tenants[0].slice, 9 * NS_PER_S);
    assert_near(run(sim, 10 * NS_PER_S), 0);
    assert_near(run(sim, 4 * NS_PER_S), 2);
    free_sim(sim);
}

/* A hard cap is for all that its processes do, also when nobody else wants the GPU. */
static void test_cap(void)
{
    struct simulation *sim = g_new(struct simulation, 1);
    struct sim_tenant *tenant;

    sim_init(sim, POLICY_SHARES);
    tenant = sim_add(sim, 1, BATCH);
    tenant->async = true;
    tenant->slice->settings.cap = 20;
    tenant->slice->settings.hard = true;
    sim_run(sim, NS_PER_S);
    assert_near(run(sim, 5 * NS_PER_S), 1);
    scheduler_charge(&sim->scheduler, tenant->slice, NS_PER_S);
    assert_near(run(sim, 5 * NS_PER_S), 0);
    for (unsigned i = 0; i < 100; i++)
        scheduler_charge(&sim->scheduler, tenant->slice, 9 * NS_PER_S);
    assert_near(run(sim, 40 * NS_PER_S), 0);
    run(sim, 10 * NS_PER_S);
    assert_near(run(sim, 5 * NS_PER_S), 1);
    free_sim(sim);
}

/* What one of the lower slices owes leaves the others of them their minimum. */
static void test_minimum(void)
{
    struct simulation *sim = g_new(struct simulation, 1);
    unsigned charges = 0;
    double usual, beside;

    sim_init(sim, POLICY_SHARES);
    for (unsigned i = 0; i < 3; i++)
        sim_add(sim, 1, BATCH)->async = true;
    sim->tenants[0].slice->settings.priority = 1;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 10 * NS_PER_S);
    usual = (double)sim->tenants[2].done_ns / NS_PER_S;
    sim_reset_counts(sim);
    for (unsigned i = 0; i < 20000; i++) {
        if (sim->scheduler.lease.holder == sim->tenants[1].slice) {
            scheduler_charge(&sim->scheduler, sim->tenants[1].slice, NS_PER_S);
            charges++;
        }
        sim_run(sim, NS_PER_MS / 2);
    }
    g_assert_cmpuint(charges, >, 0);
    beside = (double)sim->tenants[2].done_ns / NS_PER_S;
    g_test_message("%.3f s, usually %.3f s; %u charges", beside, usual, charges);
    g_assert_cmpfloat(usual, >, 0.1);
    g_assert_cmpfloat(beside, >, 0.9 * usual);
    free_sim(sim);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/ungoverned/memory", test_memory);
    g_test_add_func("/governor/ungoverned/wrong", test_wrong);
    g_test_add_func("/governor/ungoverned/restart", test_restart);
    g_test_add_func("/governor/ungoverned/time", test_time);
    g_test_add_func("/governor/ungoverned/debt", test_debt);
    g_test_add_func("/governor/ungoverned/cap", test_cap);
    g_test_add_func("/governor/ungoverned/minimum", test_minimum);
    return g_test_run();
}
