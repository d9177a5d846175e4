// SPDX-License-Identifier: MIT
/*
 * Programs without a device node, in two slices of one card, by their guards, keep to their shares.
 */
#include "remote/guard.h"
#include "remote/program.h"
#include "remote/shares.h"

#include <signal.h>
#include <unistd.h>

static void test_shares(void)
{
    struct guard guards[2];
    bool are_kept;
    int outputs[2];
    GPid pids[2];

    kit_open_two("[slice]\nweight=30\n", "[slice]\nweight=70\n");
    guards[0] = guard_open("a");
    guards[1] = guard_open("b");
    for (unsigned int i = 0; i < 2; i++)
        pids[i] = program_start("fill", guard_environment(&guards[i]), &outputs[i]);
    are_kept = shares_are(outputs, 30);
    for (unsigned int i = 0; i < 2; i++) {
        kill(pids[i], SIGKILL);
        program_await(pids[i], SIGKILL);
        close(outputs[i]);
        guard_close(&guards[i]);
    }
    kit_close();
    g_assert_true(are_kept);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    shares_run_first();
    g_test_add_func("/guard-shares/30-70", test_shares);
    return g_test_run();
}
