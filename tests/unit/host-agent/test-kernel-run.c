/* SPDX-License-Identifier: MIT */
/* Programs that change the host: one that fails, and one that does not end. */
#include <string.h>

#include "lib/bus.h"

/* The other tests' library has its own kernel. */
#define kernel_write      real_kernel_write
#define kernel_hold       real_kernel_hold
#define kernel_run        real_kernel_run
#define kernel_run_within real_kernel_run_within
#include "host-agent/daemon/modes/kernel_call.c"

static const char *const sleeper[] = {"sh", "-c", "echo busy; sleep 600 & sleep 600", NULL};

static void test_ends(void)
{
    static const char *const good[] = {"sh", "-c", "echo one; echo two >&2", NULL};
    static const char *const bad[] = {"sh", "-c", "echo why >&2; exit 3", NULL};
    static const char *const none[] = {"/nowhere/program", NULL};
    g_autoptr(GError) error = NULL;
    g_autofree char *said = NULL;

    g_assert_true(kernel_run(good, &said, &error));
    g_assert_cmpstr(said, ==, "one\ntwo\n");
    g_assert_false(kernel_run(bad, NULL, &error));
    g_assert_nonnull(strstr(error->message, "failed: why"));
    g_clear_error(&error);
    g_assert_false(kernel_run(none, NULL, &error));
    g_assert_nonnull(strstr(error->message, "can't be run"));
}

/* Killed, although its child lives on and holds its output open. */
static void test_hangs(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(kernel_run_within(1, sleeper, NULL, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_FAILED);
    g_assert_nonnull(strstr(error->message, "did not end in 1 seconds"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernel-run/ends", test_ends);
    g_test_add_func("/kernel-run/hangs", test_hangs);
    return g_test_run();
}
