// SPDX-License-Identifier: MIT
/*
 * Members whose CLOCK_MONOTONIC is not the arbiter's, as in a container with a time namespace of
 * its own, or goes much faster: for them the arbiter is late. The linker wraps the call by which
 * they read it, see governor.mk.
 */
#include "live.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

/* As in test-live.c. */
#define LEAST_OF_HEAVIER 0.6

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static int64_t shift_s;
/* The clock goes on by so much each time that it is read. */
static int64_t step_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int error = __real_clock_gettime(clock, now);

    if (clock == CLOCK_MONOTONIC)
        now->tv_sec += shift_s += step_s;
    return error;
}

static void work_in_future(struct live *live, const char *socket_path, struct live_report *report)
{
    shift_s = 86400;
    live_work(live, socket_path, report);
}

/* A clock does not go below 0: as if this machine had been started long before. */
static void work_in_past(struct live *live, const char *socket_path, struct live_report *report)
{
    shift_s = -(int64_t)(clock_now() / NS_PER_S / 2);
    live_work(live, socket_path, report);
}

static void check(LiveFunc one, LiveFunc other)
{
    const char *const slices[] = {"a", "[slice]\n", "b", "[slice]\n", NULL};
    struct live live;

    live_open(&live, slices);
    live_spawn(&live, "a", one);
    live_spawn(&live, "b", other);
    live_await_ready(&live, 0);
    live_await_ready(&live, 1);
    g_assert_cmpfloat(live_part_of_heavier(&live, 0, 1), >, LEAST_OF_HEAVIER);
    live_close(&live);
}

static void test_future(void)
{
    check(work_in_future, live_work);
}

static void test_past(void)
{
    check(work_in_past, live_work);
    check(live_work, work_in_past);
}

static void test_apart(void)
{
    check(work_in_past, work_in_future);
}

static struct live_report *told;

/* The first sentence: the process waits. */
static void count_sentence(const char *sentence)
{
    if (strstr(sentence, "does not answer"))
        told->turns++;
    told->ready = 1;
}

static void ignore_signal(int signal)
{
    (void)signal;
}

/* 4 s of its clock pass between two looks for an answer. */
static void watch_late_arbiter(struct live_report *report)
{
    struct sigaction action = {.sa_handler = ignore_signal};

    told = report;
    governor_member_set_log(count_sentence);
    sigaction(SIGUSR1, &action, NULL);
    step_s = 2;
}

static void join_late_arbiter(struct live *live, const char *socket_path,
                              struct live_report *report)
{
    GovernorMember *member;

    (void)live;
    watch_late_arbiter(report);
    member = governor_member_new(socket_path, false);
    g_assert_nonnull(member);
    g_assert_cmpuint(report->turns, ==, 1);
    step_s = 0;
    report->granted = governor_member_reserve(member, 1000, false) == GOVERNOR_MEMORY_DEVICE;
    report->done = 1;
    pause();
}

/* A busy host: the answer comes after 2 s, and a signal of the program's before. It is let in. */
static void test_late(void)
{
    const char *const slices[] = {"a", "[slice]\nvram=1000\n", NULL};
    struct live live;

    live_open(&live, slices);
    kill(live.arbiter, SIGSTOP);
    live_spawn(&live, "a", join_late_arbiter);
    live_await_ready(&live, 0);
    live_kill(&live, 0, SIGUSR1);
    kill(live.arbiter, SIGCONT);
    live_await_word(&live.reports[0].done, 1);
    g_assert_cmpuint(live.reports[0].granted, ==, 1);
    live_close(&live);
}

static void join_hung_arbiter(struct live *live, const char *socket_path,
                              struct live_report *report)
{
    int64_t begin_s;

    (void)live;
    watch_late_arbiter(report);
    g_assert_null(governor_member_new(socket_path, false));
    g_assert_cmpint(errno, ==, ETIMEDOUT);
    g_assert_cmpint(shift_s, >=, 30);
    g_assert_cmpuint(report->turns, ==, 1);
    report->done = 1;
    /* Its next call waits as long as any for an answer, not for all that again. */
    begin_s = shift_s;
    g_assert_null(governor_member_new(socket_path, true));
    g_assert_cmpint(errno, ==, ETIMEDOUT);
    g_assert_cmpint(shift_s - begin_s, <, 20);
    report->done = 2;
}

/* It never answers, and is required: no GPU, and the reason is another than that it is not there.
 */
static void test_hung(void)
{
    const char *const slices[] = {"a", "[slice]\n", NULL};
    struct live live;

    live_open(&live, slices);
    kill(live.arbiter, SIGSTOP);
    live_spawn(&live, "a", join_hung_arbiter);
    live_await_word(&live.reports[0].done, 2);
    kill(live.arbiter, SIGCONT);
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/clock/future", test_future);
    g_test_add_func("/governor/clock/past", test_past);
    g_test_add_func("/governor/clock/apart", test_apart);
    g_test_add_func("/governor/clock/late", test_late);
    g_test_add_func("/governor/clock/hung", test_hung);
    return g_test_run();
}
