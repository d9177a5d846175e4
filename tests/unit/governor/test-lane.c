// SPDX-License-Identifier: MIT
/* How a door's work becomes a number: debits, what is charged, and work that does not begin. */
#include <glib.h>

#include "lane.h"
#include "member_state.h"

/* Without an arbiter, so on pages of its own. */
static GovernorMember *new_member(void)
{
    GovernorMember *member = governor_member_new("/nowhere/governor.sock", false);

    g_assert_nonnull(member);
    return member;
}

static uint64_t in_flight(GovernorMember *member)
{
    return member->usage->classes[GOVERNOR_CLASS_COMPUTE].in_flight_ns;
}

static uint64_t charged(GovernorMember *member)
{
    return member->usage->classes[GOVERNOR_CLASS_COMPUTE].gpu_ns;
}

/* Not before others' work has ended, and no less than it should take, and never more than it was.
 */
static void test_own(void)
{
    struct lane_work work = {.submitted_at = 1000, .estimate_ns = 50};

    g_assert_cmpuint(lane_own(&work, 300, 1400), ==, 300);
    work.behind_ns = 200;
    g_assert_cmpuint(lane_own(&work, 300, 1400), ==, 200);
    g_assert_cmpuint(lane_own(&work, 100, 1400), ==, 100);
    g_assert_cmpuint(lane_own(&work, 100, 1150), ==, 50);
    g_assert_cmpuint(lane_own(&work, 30, 1150), ==, 30);
}

static void test_waits(void)
{
    struct lane_work work = {0}, deferred = {.deferred = true}, beside = {0};

    g_assert_false(lane_waits(&work, 3 * NS_PER_MS - 1, false));
    g_assert_false(work.unbegun);
    g_assert_true(lane_waits(&work, 3 * NS_PER_MS, false));
    g_assert_true(work.unbegun);
    g_assert_false(lane_waits(&work, 19 * NS_PER_MS, false));
    g_assert_false(work.stuck);
    g_assert_false(lane_waits(&work, 22 * NS_PER_MS, false));
    g_assert_true(work.stuck);
    /* Again: what was submitted since may wait for the same. */
    g_assert_true(lane_waits(&work, 23 * NS_PER_MS, false));
    g_assert_false(lane_waits(&work, 24 * NS_PER_MS, false));
    g_assert_true(lane_waits(&deferred, NS_PER_MS, false));
    /* The GPU works for another stream. What is behind this one does not wait for it all the same.
     */
    g_assert_false(lane_waits(&beside, 25 * NS_PER_MS, true));
    g_assert_true(beside.stuck);
    g_assert_false(beside.unbegun);
}

/* Work of one process that overlaps is charged once, whatever ends first. */
static void test_end(void)
{
    GovernorMember *member = new_member();
    struct governor_work asked = {.estimate_ns = 100000};
    struct lane_work one, two, three;
    uint64_t at;

    lane_begin(member, &one, &asked);
    lane_begin(member, &two, &asked);
    lane_begin(member, &three, &asked);
    at = clock_now();
    g_assert_cmpuint(in_flight(member), ==, 300000);
    g_assert_cmpuint(lane_end(member, &two, 20000, at), ==, 20000);
    g_assert_cmpuint(lane_end(member, &one, 70000, at + 10000), ==, 50000);
    g_assert_cmpuint(charged(member), ==, 70000);
    g_assert_cmpuint(in_flight(member), ==, 100000);
    g_assert_cmpuint(lane_end(member, &three, 5000, 0), ==, 5000);
    governor_member_also(member, GOVERNOR_CLASS_COMPUTE, 700);
    g_assert_cmpuint(charged(member), ==, 75700);
    g_assert_cmpuint(in_flight(member), ==, 0);
    governor_member_free(member);
}

/* A batch that ended short leaves room for others, and a deferred one counts when it begins. */
static void test_revise(void)
{
    GovernorMember *member = new_member();
    struct governor_work asked = {.estimate_ns = 500000},
                         deferred = {.estimate_ns = 500000, .deferred = true};
    struct lane_work one, two, late;

    lane_begin(member, &one, &asked);
    lane_begin(member, &two, &asked);
    lane_begin(member, &late, &deferred);
    one.debit = governor_member_revise(member, one.debit, 10000);
    late.debit = governor_member_revise(member, late.debit, 30000);
    g_assert_cmpuint(in_flight(member), ==, 510000);
    governor_member_class_stalled(member, GOVERNOR_CLASS_COMPUTE);
    two.debit = governor_member_revise(member, two.debit, 20000);
    g_assert_cmpuint(in_flight(member), ==, 30000);
    lane_begun(member, &late);
    g_assert_cmpuint(in_flight(member), ==, 60000);
    governor_member_cancel(member, one.debit);
    lane_end(member, &two, 20000, 0);
    g_assert_cmpuint(in_flight(member), ==, 30000);
    governor_member_cancel(member, late.debit);
    g_assert_cmpuint(in_flight(member), ==, 0);
    governor_member_free(member);
}

static uint64_t batch_ns(GovernorMember *member, uint64_t lease_ns, uint64_t depth_ns)
{
    struct governor_class_grant *grant = &member->grant->classes[GOVERNOR_CLASS_COMPUTE];

    grant->limit_ns = charged(member) + lease_ns;
    grant->depth_ns = depth_ns;
    return governor_member_batch_ns(member, GOVERNOR_CLASS_COMPUTE);
}

/* By what is left of the lease, and by how much others may wait for. */
static void test_batch(void)
{
    GovernorMember *member = new_member();

    g_assert_cmpuint(batch_ns(member, 4 * NS_PER_MS, 2 * NS_PER_MS), ==, 500000);
    g_assert_cmpuint(batch_ns(member, 64 * NS_PER_MS, 2 * NS_PER_MS), ==, 1000000);
    g_assert_cmpuint(batch_ns(member, 64 * NS_PER_MS, 300000), ==, 300000);
    /* A higher class waits for its work; or many processes of the slice have some. */
    g_assert_cmpuint(batch_ns(member, 4 * NS_PER_MS, 200000), ==, 200000);
    g_assert_cmpuint(batch_ns(member, 64 * NS_PER_MS, 50000), ==, 150000);
    g_assert_cmpuint(batch_ns(member, 500 * NS_PER_MS, 5 * NS_PER_MS), ==, 2000000);
    governor_member_free(member);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/lane/own", test_own);
    g_test_add_func("/governor/lane/waits", test_waits);
    g_test_add_func("/governor/lane/end", test_end);
    g_test_add_func("/governor/lane/revise", test_revise);
    g_test_add_func("/governor/lane/batch", test_batch);
    return g_test_run();
}
