// SPDX-License-Identifier: MIT
/* Cases that are hard on a scheduler, between processes, with a real arbiter. */
#include "compute.h"
#include "tenant.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* On a machine that does other things too. */
#define SHARE_SLACK 0.1

static void large_batches(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = tenant_join(socket_path, report);

    (void)live;
    for (;;)
        tenant_execute(member, report, 20 * NS_PER_MS, 20 * NS_PER_MS);
}

/* How often the thread went to sleep. */
static uint64_t turns(void)
{
    struct rusage usage;

    g_assert_cmpint(getrusage(RUSAGE_THREAD, &usage), ==, 0);
    return (uint64_t)usage.ru_nvcsw;
}

/* One that takes 2 s with an estimate of 1 ms, then short ones. */
static void one_long(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = tenant_join(socket_path, report);

    (void)live;
    tenant_execute(member, report, NS_PER_MS, 2 * NS_PER_S);
    report->granted = clock_now();
    report->turns = turns();
    governor_member_cancel(member, compute_begin(member, NS_PER_MS, false));
    report->turns = turns() - report->turns;
    for (;;)
        tenant_execute(member, report, NS_PER_MS, NS_PER_MS);
}

/* Nothing for 8 s after one dispatch of 2 s under 20 %, less what had been saved up; others have
 * the GPU. */
static void test_long_dispatch(void)
{
    const char *const slices[] = {"a", "[slice]\ncap=20\nhard=true\n", "b", "[slice]\n", NULL};
    struct live live;
    uint64_t began, others;
    double pause;

    tenant_open(&live, slices);
    live_spawn(&live, "a", one_long);
    live_await_word(&live.reports[0].done, 1);
    live_spawn(&live, "b", tenant_batches);
    live_await_word(&live.reports[1].done, 1);
    began = live.reports[0].granted;
    others = live.reports[1].done;
    live_await_word(&live.reports[0].done, 2);
    pause = (double)(live.reports[0].last_at - began) / 1e9;
    others = live.reports[1].done - others;
    g_test_message("%.2f s of nothing, the other did %d batches", pause, (int)others);
    /* Later than that only as far as nobody was there to see it; simulated time is exact. */
    g_assert_cmpfloat(pause, >, 7.6);
    g_assert_cmpuint(others, >, 200);
    g_test_message("%d looks meanwhile", (int)live.reports[0].turns);
    g_assert_cmpuint(live.reports[0].turns, >, 10);
    g_assert_cmpuint(live.reports[0].turns, <, 150);
    tenant_close(&live);
}

#define TINY_NS (20 * NS_PER_US)
#define RING    1024

/* What one thread submits and another sees the end of. */
struct pipe {
    GovernorMember *member;
    struct live_report *report;
    struct {
        uint64_t debit, end;
    } ring[RING];
    _Atomic uint64_t submitted, ended;
};

static void *reap(void *data)
{
    struct pipe *pipe = data;

    for (;;) {
        uint64_t at = pipe->ended;

        while (pipe->submitted == at)
            g_usleep(50);
        line_await(pipe->ring[at % RING].end);
        governor_member_end(pipe->member, pipe->ring[at % RING].debit, TINY_NS);
        pipe->ended++;
        tenant_done(pipe->report, TINY_NS);
    }
    return NULL;
}

static void tiny(struct live *live, const char *socket_path, struct live_report *report)
{
    static struct pipe pipe;

    (void)live;
    pipe.member = tenant_join(socket_path, report);
    pipe.report = report;
    g_thread_new("reap", reap, &pipe);
    while (!report->go)
        g_usleep(1000);
    /* Freely until the other is there. */
    while (!compute_is_metered(pipe.member)) {
        compute_count(pipe.member);
        g_usleep(1000);
    }
    for (uint64_t i = 0;; i++) {
        pipe.ring[i % RING].debit = compute_begin(pipe.member, TINY_NS, false);
        pipe.ring[i % RING].end = line_submit(line, TINY_NS);
        pipe.submitted++;
        while (pipe.submitted - pipe.ended >= RING)
            g_usleep(50);
    }
}

static void tiny_and_wait(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = tenant_join(socket_path, report);

    (void)live;
    while (!report->go)
        g_usleep(1000);
    for (;;)
        tenant_execute(member, report, TINY_NS, TINY_NS);
}

/* Of processor time, in seconds. */
static double cpu_of(GPid pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid);
    g_autofree char *text = NULL;
    unsigned long user = 0, kernel = 0;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpint(sscanf(strrchr(text, ')') + 2,
                           "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel),
                    ==, 2);
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

struct contest {
    double share;   /* of the GPU's time, the first one's */
    double rate;    /* its submissions per second */
    double arbiter; /* processors that the arbiter takes */
};

/* @first against large batches, each half: until it has done @count. */
static struct contest contest(LiveFunc first, uint64_t count)
{
    const char *const slices[] = {"a", "[slice]\n", "b", "[slice]\n", NULL};
    struct contest result;
    struct live live;
    uint64_t began;
    double cpu;

    tenant_open(&live, slices);
    live_spawn(&live, "a", first);
    live_spawn(&live, "b", large_batches);
    live_await_word(&live.reports[1].done, 5);
    live.reports[0].go = 1;
    live_await_word(&live.reports[0].done, 100);
    live_reset(&live);
    cpu = cpu_of(live.arbiter);
    began = clock_now();
    live_await_word(&live.reports[0].done, count);
    result.arbiter = (cpu_of(live.arbiter) - cpu) * 1e9 / (double)(clock_now() - began);
    result.rate = (double)live.reports[0].done * 1e9 / (double)(clock_now() - began);
    result.share = (double)live.reports[0].used_ns /
                   (double)(live.reports[0].used_ns + live.reports[1].used_ns);
    tenant_close(&live);
    g_test_message("share %.3f, %.0f submissions/s, arbiter %.1f %% of a processor", result.share,
                   result.rate, result.arbiter * 100);
    return result;
}

/*
 * A tenant with short submissions gets no more than its share, and less only if it is late: on two
 * busy processors it often is. The exact case is in simulated time, see test-scheduler.c.
 */
static void test_tiny(void)
{
    struct contest result = contest(tiny, 100000);

    g_assert_cmpfloat(result.share, <, 0.5 + SHARE_SLACK);
    g_assert_cmpfloat(result.share, >, 0.1);
    g_assert_cmpfloat(result.arbiter, <, 0.25);
}

static void test_tiny_and_wait(void)
{
    struct contest result = contest(tiny_and_wait, 2000);

    g_assert_cmpfloat(result.share, <, 0.5 + SHARE_SLACK);
    g_assert_cmpfloat(result.arbiter, <, 0.25);
}

static void assert_memory(GovernorMember *member, uint64_t limit, uint64_t used)
{
    uint64_t seen_limit = 0, seen_used = 0;

    governor_member_memory(member, &seen_limit, &seen_used);
    g_assert_cmpuint(seen_limit, ==, limit);
    g_assert_cmpuint(seen_used, ==, used);
}

/* Memory in use stays; no more is granted until enough has been returned, whoever decides. */
static void test_lowered_memory(void)
{
    const char *const slices[] = {"a", "[slice]\nvram=1000\nspill=500\n", NULL};
    struct live live;
    g_autofree char *path = NULL;
    GovernorMember *member;

    live_open(&live, slices);
    path = live_socket(&live, "a");
    member = governor_member_new(path, true);
    for (int i = 0; i < 10; i++)
        g_assert_cmpint(governor_member_reserve(member, 100, false), ==, GOVERNOR_MEMORY_DEVICE);
    g_assert_cmpint(governor_member_reserve(member, 400, true), ==, GOVERNOR_MEMORY_SPILL);
    live_configure(&live, "a", "[slice]\nvram=500\nspill=300\n");
    live_await(&live, "a", "vram_limit", 500);
    assert_memory(member, 500, 1000);
    g_assert_cmpint(governor_member_reserve(member, 1, true), ==, GOVERNOR_MEMORY_NONE);
    governor_member_release(member, 500, GOVERNOR_MEMORY_DEVICE);
    g_assert_cmpint(governor_member_reserve(member, 1, true), ==, GOVERNOR_MEMORY_NONE);
    /* Another arbiter finds more in use than there may be, and grants nothing either. */
    governor_member_release(member, 400, GOVERNOR_MEMORY_SPILL);
    g_assert_cmpint(governor_member_reserve(member, 200, true), ==, GOVERNOR_MEMORY_SPILL);
    live_configure(&live, "a", "[slice]\nvram=400\nspill=100\n");
    live_await(&live, "a", "vram_limit", 400);
    live_kill_arbiter(&live, SIGKILL);
    live_start_arbiter(&live);
    live_await(&live, "a", "members", 1);
    assert_memory(member, 400, 500);
    live_await(&live, "a", "spill_used", 200);
    g_assert_cmpint(governor_member_reserve(member, 1, true), ==, GOVERNOR_MEMORY_NONE);
    governor_member_release(member, 200, GOVERNOR_MEMORY_DEVICE);
    g_assert_cmpint(governor_member_reserve(member, 100, true), ==, GOVERNOR_MEMORY_DEVICE);
    g_assert_cmpint(governor_member_reserve(member, 1, true), ==, GOVERNOR_MEMORY_NONE);
    live_await(&live, "a", "vram_used", 400);
    governor_member_free(member);
    live_await(&live, "a", "vram_used", 0);
    live_close(&live);
}

/*
 * The part of the GPU's time that the first one uses for 20 batches of 20 ms. At most, so a clock
 * that is read late makes it less.
 */
static double use_of_next(struct live *live)
{
    uint64_t began = clock_now();
    double use;

    live_reset(live);
    live_await_word(&live->reports[0].done, 20);
    use = (double)live->reports[0].used_ns / (double)(clock_now() - began);
    g_test_message("%.3f", use);
    return use;
}

/* A cap that is set while more than that is in flight holds from then on, and can be taken away. */
static void test_lowered_time(void)
{
    const char *const slices[] = {"a", "[slice]\nvram=1\n", NULL};
    struct live live;
    double capped;

    tenant_open(&live, slices);
    live_spawn(&live, "a", large_batches);
    live_await_word(&live.reports[0].done, 5);
    live_configure(&live, "a", "[slice]\ncap=20\nhard=true\nvram=2\n");
    while (live_status(&live, "a", "throttled_ns") < (gint64)NS_PER_S / 2)
        g_usleep(5000);
    capped = use_of_next(&live);
    g_assert_cmpfloat(capped, <, 0.25);
    live_configure(&live, "a", "[slice]\nvram=3\n");
    live_await(&live, "a", "vram_limit", 3);
    g_assert_cmpfloat(use_of_next(&live), >, capped);
    tenant_close(&live);
}

/* How many batches the second one ends in the next 80 ms. */
static uint64_t other_does(const struct live *live)
{
    uint64_t before = live->reports[1].done;

    g_usleep(80000);
    return live->reports[1].done - before;
}

/*
 * One that is stopped for most of the time, as cpu.max does it: the GPU is not kept for it. The
 * other does no less meanwhile than beside it, and it gets its turns.
 */
static void test_held_up(void)
{
    const char *const slices[] = {"a", "[slice]\n", "b", "[slice]\n", NULL};
    uint64_t alone = 0, beside = 0;
    struct live live;

    tenant_open(&live, slices);
    live_spawn(&live, "a", tenant_batches);
    live_spawn(&live, "b", tenant_batches);
    live_await_word(&live.reports[0].done, 5);
    live_await_word(&live.reports[1].done, 5);
    for (unsigned i = 0; i < 20; i++) {
        beside += other_does(&live);
        live_kill(&live, 0, SIGSTOP);
        alone += other_does(&live);
        live_kill(&live, 0, SIGCONT);
        live_go_on(&live, 2);
    }
    g_test_message("%u batches, %u beside the one that is held up", (unsigned)alone,
                   (unsigned)beside);
    g_assert_cmpuint(alone, >, beside * 3 / 4);
    tenant_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/hard/long-dispatch", test_long_dispatch);
    g_test_add_func("/governor/hard/tiny", test_tiny);
    g_test_add_func("/governor/hard/tiny-and-wait", test_tiny_and_wait);
    g_test_add_func("/governor/hard/lowered-memory", test_lowered_memory);
    g_test_add_func("/governor/hard/lowered-time", test_lowered_time);
    g_test_add_func("/governor/hard/held-up", test_held_up);
    return g_test_run();
}
