// SPDX-License-Identifier: MIT
/*
 * Members whose CLOCK_MONOTONIC is not the arbiter's, as in a container with a time namespace of
 * its own. The linker wraps the call by which they read it, see governor.mk.
 */
#include "live.h"

#include <time.h>

/* As in test-live.c. */
#define LEAST_OF_HEAVIER 0.6

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static int64_t shift_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int error = __real_clock_gettime(clock, now);

    if (clock == CLOCK_MONOTONIC)
        now->tv_sec += shift_s;
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/clock/future", test_future);
    g_test_add_func("/governor/clock/past", test_past);
    g_test_add_func("/governor/clock/apart", test_apart);
    return g_test_run();
}
