// SPDX-License-Identifier: MIT
/* Programs of two VMs, whose vGPUs are of one card, keep to the vGPUs' shares. */
#include "remote/program.h"
#include "remote/shares.h"
#include "remote/vm_program.h"

#include <signal.h>
#include <unistd.h>

static GPid start_in(const char *slice, int *output)
{
    g_autofree char *socket = live_socket(&kit_live, slice);

    g_setenv("VGPU_GOVERNOR_SOCKET", socket, TRUE);
    return program_start("fill", vm_program_environment(g_get_environ()), output);
}

static void test_shares(void)
{
    static const char *const slices[] = {"a", "b"};
    bool are_kept;
    int outputs[2];
    GPid pids[2];

    kit_open_two("[slice]\nweight=30\n", "[slice]\nweight=70\n");
    g_setenv("FAKE_CUDA_TOTAL", "8589934592", TRUE);
    vm_program_open();
    for (unsigned int i = 0; i < 2; i++)
        pids[i] = start_in(slices[i], &outputs[i]);
    are_kept = shares_are(outputs, 30);
    for (unsigned int i = 0; i < 2; i++) {
        kill(pids[i], SIGKILL);
        program_await(pids[i], SIGKILL);
        close(outputs[i]);
    }
    vm_program_close();
    kit_close();
    g_assert_true(are_kept);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    shares_run_first();
    g_test_add_func("/vm-shares/30-70", test_shares);
    return g_test_run();
}
