// SPDX-License-Identifier: MIT
/* Free work of a member is tracked and bounded, with a real arbiter. */
#include "tenant.h"

#include <pthread.h>

#define BATCH     (2 * NS_PER_MS)
#define WANTED_NS (500 * NS_PER_MS)
#define MOST      256

/* Markers behind what was submitted, and when the GPU comes to them. */
struct markers {
    GovernorMember *member;
    _Atomic unsigned placed;
    uint64_t marker[MOST];
    uint64_t end_at[MOST];
};

static void *see_ends(void *data)
{
    struct markers *markers = data;

    for (unsigned i = 0;; i++) {
        while (markers->placed == i)
            g_usleep(200);
        line_await(markers->end_at[i % MOST]);
        governor_member_marked(markers->member, GOVERNOR_CLASS_COMPUTE, markers->marker[i % MOST],
                               0);
    }
    return NULL;
}

static void mark(struct markers *markers)
{
    unsigned at = markers->placed % MOST;

    markers->marker[at] =
        governor_member_mark(markers->member, GOVERNOR_CLASS_COMPUTE, 0, NULL, NULL);
    markers->end_at[at] = line_submit(line, 0);
    if (markers->marker[at])
        markers->placed++;
}

static uint64_t queued(void)
{
    uint64_t now = clock_now(), free_at = line->free_at;

    return free_at > now ? free_at - now : 0;
}

/* A program that has 500 ms queued if it may. Reports how much each submission finds there. */
static void queue_much(struct live *live, const char *path, struct live_report *report)
{
    static struct markers markers;
    pthread_t thread;

    (void)live;
    markers.member = tenant_join(path, report);
    pthread_create(&thread, NULL, see_ends, &markers);
    for (;;) {
        enum governor_pass pass = governor_member_pass(markers.member, GOVERNOR_CLASS_COMPUTE);

        g_assert_cmpint(pass, !=, GOVERNOR_PASS_METERED);
        if (pass == GOVERNOR_PASS_MARK)
            mark(&markers);
        line_submit(line, BATCH);
        report->done++;
        report->used_ns += queued();
        while (queued() > WANTED_NS)
            g_usleep(1000);
    }
}

/* What a submission found queued on average, in ms. */
static double mean_queued(struct live *live)
{
    /* Until what was queued by another bound has been worked on. */
    g_usleep(700000);
    live_reset(live);
    live_await_word(&live->reports[0].done, 300);
    return (double)live->reports[0].used_ns / (double)live->reports[0].done / 1e6;
}

static void idle(struct live *live, const char *path, struct live_report *report)
{
    (void)live;
    tenant_join(path, report);
    for (;;)
        g_usleep(1000000);
}

static void test_bound(void)
{
    const char *const slices[] = {"a", "[slice]\n", "b", "[slice]\n", NULL};
    struct live live;
    double alone, beside;

    tenant_open(&live, slices);
    live_spawn(&live, "a", queue_much);
    live_await_ready(&live, 0);
    alone = mean_queued(&live);
    live_spawn(&live, "b", idle);
    live_await_ready(&live, 1);
    beside = mean_queued(&live);
    /* When the thread that sees ends gets no processor, the other waits for it once. */
    for (unsigned i = 0; i < 4 && beside >= alone / 2; i++)
        beside = MIN(beside, mean_queued(&live));
    g_test_message("%.1f ms alone, %.1f ms beside a member", alone, beside);
    /*
     * 200 and 32 ms, exactly in simulation. A thread that sees ends late, or submits late, does so
     * in both.
     */
    g_assert_cmpfloat(beside, <, alone / 2);
    g_assert_cmpint(live_status(&live, "a", "submissions"), >, 100);
    tenant_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/markers/bound", test_bound);
    return g_test_run();
}
