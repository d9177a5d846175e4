// SPDX-License-Identifier: MIT
/*
 * Programs without a device node, in two slices of one card, by their guards, keep to their shares.
 * What counts is work that has ended. Nothing else should run beside this test.
 */
#include "remote/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Lines from it so far. */
static unsigned int lines(int output, unsigned int *sum)
{
    char text[4096];
    ssize_t got;

    while ((got = read(output, text, sizeof(text))) > 0)
        for (ssize_t i = 0; i < got; i++)
            *sum += text[i] == '\n';
    return *sum;
}

/* Two slices, two guards, one card: by work that has ended. */
static void test_shares(void)
{
    struct guard guards[2];
    GPid pids[2];
    int outputs[2];
    unsigned int did[2] = {0}, before[2];
    double share;

    kit_open_two("[slice]\nweight=30\n", "[slice]\nweight=70\n");
    guards[0] = guard_open("a");
    guards[1] = guard_open("b");
    for (unsigned int i = 0; i < 2; i++) {
        pids[i] = guard_start_client(&guards[i], "fill", &outputs[i]);
        g_assert_cmpint(fcntl(outputs[i], F_SETFL, O_NONBLOCK), ==, 0);
    }
    while (!lines(outputs[0], &did[0]) ||
           lines(outputs[0], &did[0]) + lines(outputs[1], &did[1]) < 80)
        g_usleep(1000);
    memcpy(before, did, sizeof(did));
    while (lines(outputs[0], &did[0]) + lines(outputs[1], &did[1]) < before[0] + before[1] + 300)
        g_usleep(1000);
    share = 100.0 * (did[0] - before[0]) / (did[0] + did[1] - before[0] - before[1]);
    g_test_message("%.1f %%", share);
    g_assert_cmpfloat(share, >, 22);
    g_assert_cmpfloat(share, <, 38);
    for (unsigned int i = 0; i < 2; i++) {
        kill(pids[i], SIGKILL);
        guard_await_client(pids[i], SIGKILL);
        close(outputs[i]);
        guard_close(&guards[i]);
    }
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guard-shares/30-70", test_shares);
    return g_test_run();
}
