// SPDX-License-Identifier: MIT
/* However many doors a process has: it is one member of a slice. */
#include "live.h"

#include <errno.h>

static const char *const slices[] = {"a", "[slice]\nvram=1000000\n", "b", "[slice]\nvram=1000000\n",
                                     NULL};

static void test_one(void)
{
    struct live live;
    g_autofree char *a = NULL;
    g_autofree char *b = NULL;
    GovernorMember *first, *second, *other;

    live_open(&live, slices);
    a = live_socket(&live, "a");
    b = live_socket(&live, "b");
    first = governor_member_get(a, true);
    second = governor_member_get(a, true);
    other = governor_member_get(b, true);
    g_assert_nonnull(first);
    g_assert_true(first == second);
    g_assert_true(first != other);
    live_await(&live, "a", "members", 1);
    g_assert_cmpint(governor_member_reserve(first, 1000, false), ==, GOVERNOR_MEMORY_DEVICE);
    governor_member_put(first);
    live_await(&live, "a", "members", 1);
    live_await(&live, "a", "vram_used", 1000);
    governor_member_release(second, 1000, GOVERNOR_MEMORY_DEVICE);
    governor_member_put(second);
    live_await(&live, "a", "members", 0);
    /* That all of it was returned, and by whom, does not matter. */
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 0);
    g_assert_cmpint(live_status(&live, "a", "vram_peak"), ==, 1000);
    g_assert_cmpint(live_status(&live, "b", "vram_peak"), ==, 0);
    live_await(&live, "b", "members", 1);
    governor_member_put(other);
    live_await(&live, "b", "members", 0);
    live_close(&live);
}

static void test_refused(void)
{
    g_assert_null(governor_member_get("/nowhere/governor.sock", true));
    g_assert_cmpint(errno, ==, ENOENT);
    governor_member_put(NULL);
}

static void test_none(void)
{
    GovernorMember *first = governor_member_get(NULL, true);
    GovernorMember *second = governor_member_get(NULL, true);

    g_assert_nonnull(first);
    g_assert_true(first != second);
    governor_member_put(first);
    governor_member_put(second);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/registry/one", test_one);
    g_test_add_func("/registry/refused", test_refused);
    g_test_add_func("/registry/none", test_none);
    return g_test_run();
}
