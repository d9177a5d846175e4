// SPDX-License-Identifier: MIT
/* Classes of work, queues and spans of members, with a real arbiter. */
#include "live.h"
#include "member.h"

#include <unistd.h>

/* Capped, so that all work is metered, with or without others. */
static const char *const slices[] = {"a", "[slice]\ncap=90\nhard=true\n", "b",
                                     "[slice]\ncap=90\nhard=true\n", NULL};

#define ROUNDS 9

static GovernorMember *join(const char *path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(path, true);

    g_assert_nonnull(member);
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    return member;
}

static uint64_t submit(GovernorMember *member, enum governor_class class, uint32_t queue,
                       uint64_t ns)
{
    return governor_member_submit_work(
        member, &(struct governor_work){.class = class, .queue = queue, .estimate_ns = ns}, NULL);
}

/* Has work in flight for longer than the test takes. */
static void compute(struct live *live, const char *path, struct live_report *report)
{
    GovernorMember *member = join(path, report);

    (void)live;
    submit(member, GOVERNOR_CLASS_COMPUTE, 0, 10 * NS_PER_S);
    report->granted = 1;
    for (;;)
        pause();
}

/* Copies, and then wants to compute. */
static void copy(struct live *live, const char *path, struct live_report *report)
{
    GovernorMember *member = join(path, report);

    (void)live;
    for (unsigned i = 0; i < 10; i++)
        governor_member_end(member, submit(member, GOVERNOR_CLASS_COPY, 0, NS_PER_MS), NS_PER_MS);
    report->granted = 1;
    submit(member, GOVERNOR_CLASS_COMPUTE, 0, NS_PER_MS);
    report->granted = 2;
    for (;;)
        pause();
}

/* It waits, and nothing will let it go on soon. */
static void assert_waits(const _Atomic uint64_t *word, uint64_t value)
{
    g_usleep(500000);
    g_assert_cmpuint(*word, <, value);
}

/* Who copies does not wait for those who compute; who computes does. */
static void test_apart(void)
{
    struct live live;

    live_open(&live, slices);
    live_spawn(&live, "a", compute);
    live_spawn(&live, "b", copy);
    live_await_ready(&live, 0);
    live_await_ready(&live, 1);
    live.reports[0].go = 1;
    live_await_word(&live.reports[0].granted, 1);
    live.reports[1].go = 1;
    live_await_word(&live.reports[1].granted, 1);
    assert_waits(&live.reports[1].granted, 2);
    g_assert_cmpint(live_status(&live, "b", "copy_ns"), ==, 10 * (gint64)NS_PER_MS);
    g_assert_cmpint(live_status(&live, "b", "gpu_ns"), ==, 0);
    live_close(&live);
}

/* What is in flight on one queue does not hold up another. */
static void two_queues(struct live *live, const char *path, struct live_report *report)
{
    GovernorMember *member = join(path, report);

    (void)live;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t began, other, same, debits[3];

        debits[0] = submit(member, GOVERNOR_CLASS_COMPUTE, 0, 40 * NS_PER_MS);
        began = clock_now();
        debits[1] = submit(member, GOVERNOR_CLASS_COMPUTE, 1, NS_PER_MS);
        other = clock_now() - began;
        debits[2] = submit(member, GOVERNOR_CLASS_COMPUTE, 0, NS_PER_MS);
        same = clock_now() - began;
        for (unsigned k = 0; k < 3; k++)
            governor_member_end(member, debits[k], NS_PER_MS);
        report->used_ns += other < same / 2;
        report->granted += same >= 37 * NS_PER_MS;
    }
    report->done = 1;
    for (;;)
        pause();
}

/* The same queue waits until 2 ms are queued there; the other one does not, in most of the rounds.
 */
static void test_queues(void)
{
    struct live live;

    live_open(&live, slices);
    live_spawn(&live, "a", two_queues);
    live_await_ready(&live, 0);
    live.reports[0].go = 1;
    live_await_word(&live.reports[0].done, 1);
    g_assert_cmpuint(live.reports[0].granted, ==, ROUNDS);
    g_assert_cmpuint(live.reports[0].used_ns, >, ROUNDS / 2);
    live_close(&live);
}

/* The GPU worked for it from @go on for 50 ms, on two queues. */
static void span(struct live *live, const char *path, struct live_report *report)
{
    GovernorMember *member = join(path, report);
    uint64_t begin = report->go;

    (void)live;
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t debit = submit(member, GOVERNOR_CLASS_COMPUTE, i, NS_PER_MS);

        while (clock_now() < begin + 60 * NS_PER_MS)
            g_usleep(1000);
        governor_member_ran(member, debit, begin, begin + 50 * NS_PER_MS);
    }
    report->granted = 1;
    for (;;)
        pause();
}

/*
 * Of two slices at the same time: each pays half of what was in its turn, and all of what was not;
 * and none for its two queues twice.
 */
static void test_spans(void)
{
    struct live live;
    uint64_t now;

    live_open(&live, slices);
    live_spawn(&live, "a", span);
    live_spawn(&live, "b", span);
    live_await_ready(&live, 0);
    live_await_ready(&live, 1);
    now = clock_now();
    live.reports[0].go = live.reports[1].go = now;
    live_await_word(&live.reports[0].granted, 1);
    live_await_word(&live.reports[1].granted, 1);
    /* What is given back is taken off the next charge. */
    g_test_message("%.1f and %.1f ms", (double)live_status(&live, "a", "gpu_ns") / 1e6,
                   (double)live_status(&live, "b", "gpu_ns") / 1e6);
    g_assert_cmpint(live_status(&live, "a", "gpu_ns") + live_status(&live, "b", "gpu_ns"), >=,
                    75 * (gint64)NS_PER_MS);
    g_assert_cmpint(live_status(&live, "a", "gpu_ns") + live_status(&live, "b", "gpu_ns"), <=,
                    100 * (gint64)NS_PER_MS);
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/classes/apart", test_apart);
    g_test_add_func("/governor/classes/queues", test_queues);
    g_test_add_func("/governor/classes/spans", test_spans);
    return g_test_run();
}
