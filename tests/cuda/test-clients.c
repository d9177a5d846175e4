// SPDX-License-Identifier: MIT
/* Unmodified foreign programs on the libraries as installed, found by LD_LIBRARY_PATH. */
#include "kit.h"

static void run(const char *program, const char *argument)
{
    const char *argv[] = {program, argument, NULL};
    g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "LD_LIBRARY_PATH", PLAIN_DIR, TRUE);
    g_autofree char *said = NULL;
    GError *error = NULL;
    int status = -1;

    g_assert_true(g_spawn_sync(NULL, (char **)argv, env, G_SPAWN_SEARCH_PATH, NULL, NULL, &said,
                               NULL, &status, &error));
    g_assert_no_error(error);
    g_assert_cmpint(status, ==, 0);
    /* A governed program's output is its own. */
    g_assert_cmpstr(said, ==, "");
}

static void test_ffnvcodec(void)
{
    kit_open(64 * MIB);
    run(CLIENTS_DIR "/client-ffnvcodec", NULL);
    kit_charged(0);
    kit_close();
}

static void test_ctypes(void)
{
    kit_open(64 * MIB);
    run("python3", "tests/cuda/client.py");
    kit_charged(0);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/clients/ffnvcodec", test_ffnvcodec);
    g_test_add_func("/clients/ctypes", test_ctypes);
    return g_test_run();
}
