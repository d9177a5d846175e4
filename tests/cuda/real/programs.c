// SPDX-License-Identifier: MIT
/*
 * Programs of NVIDIA's tools, unmodified, in a slice of the fake card: the door is in front of the
 * fake driver as it is installed. Those that check could not make are skipped, and it says why.
 */
#include "kit.h"

#include <stdlib.h>
#include <unistd.h>

#define LIMIT (64 * MIB)

/* What it printed; NULL: it is not here. */
static char *run(const char *program, const char *argument)
{
    g_autofree char *path = g_build_filename(REAL_PROGRAMS, program, NULL);
    g_autofree char *file = argument ? g_build_filename(REAL_PROGRAMS, argument, NULL) : NULL;
    const char *argv[] = {path, file, NULL};
    g_auto(GStrv) env =
        g_environ_setenv(g_get_environ(), "LD_LIBRARY_PATH", PLAIN_DIR ":" REAL_PROGRAMS, TRUE);
    char *said = NULL;
    GError *error = NULL;
    int status = -1;

    if (access(path, X_OK) || (file && access(file, R_OK))) {
        g_test_skip("not made on this machine");
        return NULL;
    }
    g_assert_true(
        g_spawn_sync(NULL, (char **)argv, env, 0, NULL, NULL, &said, NULL, &status, &error));
    g_assert_no_error(error);
    g_test_message("%s %s: status %d, %s", program, argument ? argument : "", status, said);
    g_assert_cmpint(status, ==, 0);
    return said;
}

/* It has the slice's memory, and was charged for its time. */
static void test_image(const void *image)
{
    g_autofree char *shown = NULL;
    g_autofree char *said = NULL;

    kit_open_two("[slice]\nvram=67108864\ncap=90\nhard=true\n", "[slice]\n");
    shown = g_build_filename(kit_live.root, "only-a", NULL);
    g_setenv("VGPU_GOVERNOR_SLICES", shown, TRUE);
    said = image ? run("driver", image) : run("nvrtc", NULL);
    if (said) {
        g_assert_cmpstr(said, ==, "64\n");
        kit_charged(0);
        g_assert_cmpint(live_status(&kit_live, "a", "gpu_ns"), >, 0);
    }
    kit_close();
}

/* cudaErrorSoftwareValidityNotEstablished, or that it cannot use the driver: no crash. */
static void test_runtime(void)
{
    g_autofree char *said = NULL;

    kit_open(LIMIT);
    said = run("runtime", NULL);
    if (said)
        g_assert_cmpint(atoi(said), !=, 0);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/real/fatbin", "kernels.fatbin", test_image);
    g_test_add_data_func("/real/cubin", "kernels.cubin", test_image);
    g_test_add_data_func("/real/ptx", "kernels.ptx", test_image);
    g_test_add_data_func("/real/nvrtc", NULL, test_image);
    g_test_add_func("/real/runtime", test_runtime);
    return g_test_run();
}
