// SPDX-License-Identifier: MIT
/*
 * Work that is expected: what the lower classes and the own class lose by it, in simulated time;
 * and when a member says so.
 */
#include "live.h"
#include "simulation.h"

#include "member_state.h"

#include <sys/socket.h>
#include <unistd.h>

#define BATCH (200 * NS_PER_US)

/* One that always works, and one that will say something. */
static struct simulation *sim_of_two(struct sim_tenant **works, struct sim_tenant **says,
                                     unsigned priority)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);

    *works = sim_add(sim, 100, BATCH);
    *says = sim_add(sim, 100, BATCH);
    (*works)->async = true;
    (*says)->stopped = true;
    (*says)->slice->settings.priority = priority;
    sim_run(sim, 100 * NS_PER_MS);
    return sim;
}

static void say(struct simulation *sim, struct sim_tenant *tenant)
{
    tenant->expects_at = sim->now;
    scheduler_heard(&tenant->member);
    sim->call_at = scheduler_run(&sim->scheduler, sim->now);
}

/* The lower class's work leaves the GPU, and comes back if nothing follows. */
static void test_higher(void)
{
    struct sim_tenant *lower, *higher;
    struct simulation *sim = sim_of_two(&lower, &higher, 1);

    g_assert_cmpint(higher->preempts, !=, 0);
    g_assert_cmpint(lower->preempts, ==, 0);
    say(sim, higher);
    sim_run(sim, NS_PER_MS);
    g_assert_cmpuint(lower->in_flight, ==, 0);
    g_assert_cmpuint(higher->grant.limit_ns, >, higher->usage.gpu_ns);
    sim_run(sim, 3 * NS_PER_MS / 2);
    g_assert_cmpuint(lower->in_flight, >, 0);
    /* It has missed nothing. */
    g_assert_false(higher->member.silent);
    g_assert_cmpuint(higher->slice->missed, ==, 0);
    sim_free(sim);
}

/* What has come is not expected any more. */
static void test_comes(void)
{
    struct sim_tenant *lower, *higher;
    struct simulation *sim = sim_of_two(&lower, &higher, 1);
    double lead = higher->slice->handover.all.mean_ns;

    say(sim, higher);
    sim_run(sim, NS_PER_MS);
    higher->next_at = sim->now;
    higher->burst = 1;
    higher->period_ns = NS_PER_S;
    higher->stopped = false;
    sim_run(sim, 3 * NS_PER_MS / 2);
    g_assert_cmpuint(higher->done, ==, 1);
    g_assert_cmpuint(lower->in_flight, >, 0);
    /* How long it has taken is not how long its process takes to react. */
    g_assert_cmpfloat(higher->slice->handover.all.mean_ns, ==, lead);
    sim_free(sim);
}

/* Of the same class, nobody loses anything. */
static void test_equal(void)
{
    struct sim_tenant *one, *two;
    struct simulation *sim = sim_of_two(&one, &two, 0);

    g_assert_cmpint(one->preempts, ==, 0);
    g_assert_cmpint(two->preempts, ==, 0);
    sim_reset_counts(sim);
    for (unsigned i = 0; i < 100; i++) {
        say(sim, two);
        sim_run(sim, NS_PER_MS);
    }
    g_assert_cmpfloat((double)one->done_ns, >, 0.99 * 100 * NS_PER_MS);
    sim_free(sim);
}

/* Who says so again and again, and does nothing, leaves the lower classes their minimum. */
static void test_liar(void)
{
    struct sim_tenant *lower, *higher;
    struct simulation *sim = sim_of_two(&lower, &higher, 1);

    sim_reset_counts(sim);
    for (unsigned i = 0; i < 2000; i++) {
        say(sim, higher);
        sim_run(sim, NS_PER_MS);
    }
    g_test_message("the lower class has %.3f", (double)lower->done_ns / (2 * NS_PER_S));
    g_assert_cmpfloat((double)lower->done_ns, >, 0.045 * 2 * NS_PER_S);
    sim_free(sim);
}

/* What the GPU is kept for counts against its hard cap, whether work comes or not. */
static void test_capped(void)
{
    struct sim_tenant *lower, *higher;
    struct simulation *sim = sim_of_two(&lower, &higher, 1);

    higher->slice->settings.cap = 20;
    higher->slice->settings.hard = true;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    for (unsigned i = 0; i < 4000; i++) {
        say(sim, higher);
        sim_run(sim, NS_PER_MS / 2);
    }
    g_test_message("the lower class has %.3f", (double)lower->done_ns / (2 * NS_PER_S));
    g_assert_cmpfloat((double)lower->done_ns, >, 0.7 * 2 * NS_PER_S);
    sim_free(sim);
}

/* Until it has a lease that it has not waited for. */
static void expect_all_the_time(struct live *live, const char *socket_path,
                                struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);
    const struct governor_class_grant *grant = &member->grant->classes[GOVERNOR_CLASS_COMPUTE];

    (void)live;
    while (!atomic_load(&grant->limit_ns)) {
        governor_member_expect(member, GOVERNOR_CLASS_COMPUTE);
        g_usleep(200);
    }
    report->ready = 1;
    governor_member_free(member);
}

/* With a real arbiter. */
static void test_live(void)
{
    static const char *const slices[] = {"low", "[slice]\nweight=100\n", "high",
                                         "[slice]\nweight=100\npriority=1\n", NULL};
    struct live live;

    live_open(&live, slices);
    live_spawn(&live, "low", live_work);
    live_await(&live, "low", "pids", live.members[0]);
    live_await_ready(&live, live_spawn(&live, "high", expect_all_the_time));
    live_close(&live);
}

static GovernorMember *member_new(int *arbiter)
{
    GovernorMember *member = g_new0(GovernorMember, 1);
    int fds[2];

    g_assert_true(state_init(member));
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), ==, 0);
    member->fd = fds[0];
    member->link = LINK_JOINED;
    *arbiter = fds[1];
    return member;
}

static unsigned told(int arbiter)
{
    struct governor_message message;
    unsigned count = 0;

    for (; recv(arbiter, &message, sizeof(message), 0) == sizeof(message); count++) {
        g_assert_cmpint(message.type, ==, GOVERNOR_WANT);
        g_assert_cmpuint(message.other, ==, GOVERNOR_CLASS_COMPUTE);
    }
    return count;
}

/* Only to an arbiter that heeds it, once for a pause. */
static void test_member(void)
{
    int arbiter;
    GovernorMember *member = member_new(&arbiter);
    _Atomic uint64_t *at = &member->usage->expects_at_ns[GOVERNOR_CLASS_COMPUTE];

    governor_member_expect(member, GOVERNOR_CLASS_COMPUTE);
    g_assert_cmpuint(told(arbiter), ==, 0);
    g_assert_cmpuint(*at, ==, 0);
    member->grant->preempts[GOVERNOR_CLASS_COMPUTE] = 1;
    governor_member_expect(member, GOVERNOR_CLASS_COMPUTE);
    g_assert_cmpuint(told(arbiter), ==, 1);
    g_assert_cmpuint(*at, >, 0);
    /* Not again within that time. */
    *at = UINT64_MAX - GOVERNOR_EXPECTED_MOST_NS;
    governor_member_expect(member, GOVERNOR_CLASS_COMPUTE);
    g_assert_cmpuint(told(arbiter), ==, 0);
    *at = 0;
    member->lanes[GOVERNOR_CLASS_COMPUTE].in_flight = 1;
    governor_member_expect(member, GOVERNOR_CLASS_COMPUTE);
    g_assert_cmpuint(told(arbiter), ==, 0);
    /* A copy says so, too: after a pause, for soon after work it may be that of a result. */
    member->lanes[GOVERNOR_CLASS_COMPUTE].in_flight = 0;
    member->lanes[GOVERNOR_CLASS_COMPUTE].ended_at_ns = member_now(member) + NS_PER_S;
    governor_member_pass(member, GOVERNOR_CLASS_COPY);
    g_assert_cmpuint(told(arbiter), ==, 0);
    member->lanes[GOVERNOR_CLASS_COMPUTE].ended_at_ns = 0;
    governor_member_pass(member, GOVERNOR_CLASS_COPY);
    g_assert_cmpuint(told(arbiter), ==, 1);
    close(member->fd);
    close(arbiter);
    state_clear(member);
    g_free(member);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/expect/higher", test_higher);
    g_test_add_func("/governor/expect/comes", test_comes);
    g_test_add_func("/governor/expect/equal", test_equal);
    g_test_add_func("/governor/expect/liar", test_liar);
    g_test_add_func("/governor/expect/capped", test_capped);
    g_test_add_func("/governor/expect/member", test_member);
    g_test_add_func("/governor/expect/live", test_live);
    return g_test_run();
}
