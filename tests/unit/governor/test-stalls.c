// SPDX-License-Identifier: MIT
/*
 * A member whose work waits for its own other work: what it tells, and that the second is not held
 * up by the time for which the first has waited. On pages of the test's own, without an arbiter.
 */
#include "compute.h"
#include "member_state.h"

#include "clock.h"

#include <glib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIMIT (4 * NS_PER_MS)

/* A member that has a lease, and the arbiter's end of its connection. */
static GovernorMember *member_new(int *arbiter)
{
    GovernorMember *member = g_new0(GovernorMember, 1);
    int fds[2];

    g_assert_true(state_init(member));
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), ==, 0);
    member->fd = fds[0];
    member->link = LINK_JOINED;
    *arbiter = fds[1];
    atomic_store(&member->lanes[0].grant->mode, GOVERNOR_MODE_METERED);
    atomic_store(&member->lanes[0].grant->depth_ns, NS_PER_MS);
    atomic_store(&member->lanes[0].grant->limit_ns, LIMIT);
    atomic_store(&member->lanes[0].grant->contended, 1);
    return member;
}

static void member_end(GovernorMember *member, int arbiter)
{
    close(member->fd);
    close(arbiter);
    state_clear(member);
    g_free(member);
}

static uint64_t submit(GovernorMember *member, uint32_t queue)
{
    struct governor_work work = {.estimate_ns = NS_PER_MS, .queue = queue};

    return governor_member_submit_work(member, &work, NULL);
}

/* As if that had been so long ago. */
static void go_back(GovernorMember *member, uint64_t ns)
{
    member->lanes[0].began_at_ns -= ns;
    member->lanes[0].ended_at_ns -= MIN(ns, member->lanes[0].ended_at_ns);
    for (unsigned i = 0; i < LANE_QUEUES; i++)
        member->lanes[0].queues[i].runs_since_ns -=
            MIN(ns, member->lanes[0].queues[i].runs_since_ns);
}

/* How often it has told the arbiter that since the last call. */
static unsigned told(int arbiter, enum governor_message_type type)
{
    struct governor_message message;
    unsigned count = 0;

    while (recv(arbiter, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message))
        count += message.type == type;
    return count;
}

static void *submit_other(void *data)
{
    submit(data, 1);
    return NULL;
}

/* True if another queue's submission goes out; false: it waits for a lease. */
static bool goes_out(GovernorMember *member)
{
    const struct governor_class_usage *usage = member->lanes[0].usage;
    uint64_t before = atomic_load(&usage->submissions);
    GThread *thread = g_thread_new("other", submit_other, member);
    bool waits = false;

    while (atomic_load(&usage->submissions) == before && !waits)
        waits = atomic_load(&usage->waiting) > 0;
    if (waits) {
        atomic_store(&member->lanes[0].grant->limit_ns, UINT64_MAX);
        atomic_fetch_add(&member->lanes[0].grant->sequence, 1);
        futex_wake(&member->lanes[0].grant->sequence);
    }
    g_thread_join(thread);
    return !waits;
}

/*
 * Work that is on the GPU uses the lease up; work that has stalled does not. When the first
 * submission came to a lease that it had waited for is told, and not when later ones did.
 */
static void test_lease(void)
{
    for (unsigned stalls = 0; stalls < 2; stalls++) {
        int arbiter;
        GovernorMember *member = member_new(&arbiter);
        uint64_t came_at;

        submit(member, 0);
        if (stalls)
            compute_stalled(member);
        go_back(member, 2 * LIMIT);
        g_assert_cmpint(goes_out(member), ==, stalls);
        came_at = atomic_load(&member->usage->came_at_ns[0]);
        g_assert_cmpint(came_at != 0, ==, !stalls);
        if (came_at)
            submit(member, 2);
        g_assert_cmpuint(atomic_load(&member->usage->came_at_ns[0]), ==, came_at);
        member_end(member, arbiter);
    }
}

/* What comes after has begun when it comes: the arbiter learns that something is in flight. */
static void test_begins(void)
{
    int arbiter;
    GovernorMember *member = member_new(&arbiter);
    uint64_t then;

    atomic_store(&member->lanes[0].grant->limit_ns, UINT64_MAX);
    submit(member, 0);
    compute_stalled(member);
    go_back(member, LIMIT);
    then = member->lanes[0].began_at_ns;
    submit(member, 1);
    g_assert_cmpuint(atomic_load(&member->lanes[0].usage->began_at_ns), >, then + LIMIT);
    member_end(member, arbiter);
}

/* A report that the arbiter has lost, or taken back for other work, is repeated. */
static void test_told(void)
{
    int arbiter;
    GovernorMember *member = member_new(&arbiter);
    uint64_t debit, other;

    compute_stalled(member);
    g_assert_cmpuint(told(arbiter, GOVERNOR_STALLED), ==, 0);
    debit = submit(member, 0);
    compute_stalled(member);
    compute_stalled(member);
    g_assert_cmpuint(told(arbiter, GOVERNOR_STALLED), ==, 2);
    /* The other's end leaves nothing but stalled work. */
    other = submit(member, 1);
    governor_member_end(member, other, NS_PER_MS / 2);
    g_assert_cmpuint(told(arbiter, GOVERNOR_STALLED), ==, 1);
    debit = governor_member_begun(member, debit);
    governor_member_end(member, debit, NS_PER_MS / 2);
    g_assert_cmpuint(told(arbiter, GOVERNOR_STALLED), ==, 0);
    g_assert_cmpuint(member->lanes[0].in_flight, ==, 0);
    g_assert_cmpuint(member->lanes[0].stalled, ==, 0);
    member_end(member, arbiter);
}

/* However they end, the count of those that have stalled follows. */
static void test_count(void)
{
    int arbiter;
    GovernorMember *member = member_new(&arbiter);
    uint64_t debits[4];

    atomic_store(&member->lanes[0].grant->limit_ns, UINT64_MAX);
    for (unsigned i = 0; i < 4; i++)
        debits[i] = submit(member, i);
    compute_stalled(member);
    g_assert_cmpuint(member->lanes[0].stalled, ==, 4);
    governor_member_end(member, debits[0], NS_PER_MS);
    governor_member_cancel(member, debits[1]);
    debits[2] = governor_member_begun(member, debits[2]);
    g_assert_cmpuint(member->lanes[0].stalled, ==, 1);
    governor_member_end(member, debits[2], NS_PER_MS);
    governor_member_end(member, debits[3], NS_PER_MS);
    g_assert_cmpuint(member->lanes[0].stalled, ==, 0);
    g_assert_cmpuint(member->lanes[0].in_flight, ==, 0);
    member_end(member, arbiter);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/stalls/lease", test_lease);
    g_test_add_func("/governor/stalls/begins", test_begins);
    g_test_add_func("/governor/stalls/told", test_told);
    g_test_add_func("/governor/stalls/count", test_count);
    return g_test_run();
}
