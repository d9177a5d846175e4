// SPDX-License-Identifier: MIT
/*
 * Programs whose thread-local variables fill more than a small stack, which the C library takes
 * from: numerical libraries have such. They are members like others.
 */
#include "live.h"

static _Thread_local volatile char large[512 << 10];

static const char *const slices[] = {"a", "[slice]\nvram=1000000\n", NULL};

static void test_joins(void)
{
    struct live live;
    g_autofree char *path = NULL;
    GovernorMember *member;

    large[sizeof(large) - 1] = 1;
    live_open(&live, slices);
    path = live_socket(&live, "a");
    member = governor_member_get(path, true);
    g_assert_nonnull(member);
    live_await(&live, "a", "members", 1);
    governor_member_put(member);
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/static-tls/joins", test_joins);
    return g_test_run();
}
