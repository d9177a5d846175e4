// SPDX-License-Identifier: MIT
/* The engine looks by itself while requests come quickly, and sleeps otherwise. */
#include "poller.h"

#define START G_USEC_PER_SEC

/* @count requests, one every @gap; returns the time of the last. */
static gint64 requests(struct poller *poller, gint64 from, int count, gint64 gap)
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

    g_assert_cmpint(poller_interval(&poller, START), ==, -1);
    poller_seen(&poller, START);
    g_assert_cmpint(poller_interval(&poller, START + 1), ==, -1);
}

static void test_busy(void)
{
    struct poller poller = {0};
    gint64 last = requests(&poller, START, 20, 2000);

    /* Several looks until the next is due. */
    g_assert_cmpint(poller_interval(&poller, last + 1), >, 0);
    g_assert_cmpint(poller_interval(&poller, last + 1), <=, 1000);
    g_assert_cmpint(poller_interval(&poller, last + 2500), >, 0);
    /* The burst is over. */
    g_assert_cmpint(poller_interval(&poller, last + 50000), ==, -1);
}

static void test_seldom(void)
{
    struct poller poller = {0};
    gint64 last = requests(&poller, START, 20, 30000);

    g_assert_cmpint(poller_interval(&poller, last + 1), ==, -1);
}

static void test_after_a_pause(void)
{
    struct poller poller = {0};
    gint64 last = requests(&poller, START, 20, 1000);

    poller_seen(&poller, last + 10 * G_USEC_PER_SEC);
    g_assert_cmpint(poller_interval(&poller, last + 10 * G_USEC_PER_SEC + 1), ==, -1);
}

/* However fast the guest is, the engine sleeps between looks. */
static void test_flood(void)
{
    struct poller poller = {0};
    gint64 last = requests(&poller, START, 1000, 1);

    g_assert_cmpint(poller_interval(&poller, last), >=, 50);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/poller/idle", test_idle);
    g_test_add_func("/poller/busy", test_busy);
    g_test_add_func("/poller/seldom", test_seldom);
    g_test_add_func("/poller/after-a-pause", test_after_a_pause);
    g_test_add_func("/poller/flood", test_flood);
    return g_test_run();
}
