// SPDX-License-Identifier: MIT
/* The driver looks by itself while requests come quickly, and sleeps otherwise. */
#include "poller.h"

#include <linux/vgpu.h>

#define START G_USEC_PER_SEC

/* @count requests, one every @gap; returns the time of the last. */
static gint64 poll_requests(struct poller *poller, gint64 from, int count, gint64 gap)
{
    for (int i = 0; i < count; i++) {
        from += gap;
        poller_seen(poller, from);
    }
    return from;
}

static void test_idle(void)
{
    struct poller poller = {0};

    g_assert_cmpint(poller_time(&poller, START), ==, 0);
    poller_seen(&poller, START);
    g_assert_cmpint(poller_time(&poller, START + 1), ==, 0);
}

static void test_busy(void)
{
    struct poller poller = {0};
    gint64 last = poll_requests(&poller, START, 20, 100);

    g_assert_cmpint(poller_time(&poller, last + 1), >, 0);
    /* The next is a little late. */
    g_assert_cmpint(poller_time(&poller, last + 150), >, 0);
    /* The burst is over. */
    g_assert_cmpint(poller_time(&poller, last + 2000), ==, 0);
}

/* Most looks would be in vain, and each request would wait for one. */
static void test_apart(void)
{
    struct poller poller = {0};
    gint64 last = poll_requests(&poller, START, 20, 1000);

    g_assert_cmpint(poller_time(&poller, last + 1), ==, 0);
}

static void test_after_a_pause(void)
{
    struct poller poller = {0};
    gint64 last = poll_requests(&poller, START, 20, 100) + 10 * G_USEC_PER_SEC;

    poller_seen(&poller, last);
    g_assert_cmpint(poller_time(&poller, last + 1), ==, 0);
    last = poll_requests(&poller, last, 3, 20);
    g_assert_cmpint(poller_time(&poller, last + 1), >, 0);
}

/* The driver allows no more, and the longer the pause, the shorter the look. */
static void test_bounded(void)
{
    struct poller poller = {0};
    gint64 last = poll_requests(&poller, START, 1000, 1);

    g_assert_cmpint(poller_time(&poller, last), <=, VGPU_EXCHANGE_POLL_MAX);
    g_assert_cmpint(poller_time(&poller, last + 100), ==, poller_time(&poller, last) - 100);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/poller/idle", test_idle);
    g_test_add_func("/poller/busy", test_busy);
    g_test_add_func("/poller/apart", test_apart);
    g_test_add_func("/poller/after-a-pause", test_after_a_pause);
    g_test_add_func("/poller/bounded", test_bounded);
    return g_test_run();
}
