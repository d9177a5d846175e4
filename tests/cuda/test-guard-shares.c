// SPDX-License-Identifier: MIT
/*
 * Programs without a device node, in two slices of one card, by their guards, keep to their shares.
 * What counts is work that has ended. Nothing else should run beside this test.
 */
#include "remote/guard.h"
#include "remote/program.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lines: twelve fills, 24 ms of the card. */
#define WARM  15
#define PART  20
#define PARTS 7

static unsigned int did[2];
static int outputs[2];

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

/* The first program's part of so many lines of both, per cent. */
static double share_of(unsigned int wanted)
{
    unsigned int before[2] = {did[0], did[1]}, now[2];

    do {
        g_usleep(1000);
        for (unsigned int i = 0; i < 2; i++)
            now[i] = lines(outputs[i], &did[i]) - before[i];
    } while (now[0] + now[1] < wanted);
    return 100.0 * now[0] / (now[0] + now[1]);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/*
 * Two slices, two guards, one card. Counted as in test-shares.c: a program that gets no processor
 * for a while has no work for the card, so it is the share of most of the time.
 */
static void test_shares(void)
{
    struct guard guards[2];
    double parts[PARTS];
    GPid pids[2];

    kit_open_two("[slice]\nweight=30\n", "[slice]\nweight=70\n");
    guards[0] = guard_open("a");
    guards[1] = guard_open("b");
    for (unsigned int i = 0; i < 2; i++) {
        pids[i] = program_start("fill", guard_environment(&guards[i]), &outputs[i]);
        g_assert_cmpint(fcntl(outputs[i], F_SETFL, O_NONBLOCK), ==, 0);
    }
    while (!lines(outputs[0], &did[0]) || !lines(outputs[1], &did[1]))
        g_usleep(1000);
    share_of(WARM);
    for (unsigned int i = 0; i < PARTS; i++) {
        parts[i] = share_of(PART);
        g_test_message("%.1f %%", parts[i]);
    }
    for (unsigned int i = 0; i < 2; i++) {
        kill(pids[i], SIGKILL);
        program_await(pids[i], SIGKILL);
        close(outputs[i]);
        guard_close(&guards[i]);
    }
    kit_close();
    qsort(parts, PARTS, sizeof(parts[0]), compare);
    g_assert_cmpfloat(parts[PARTS / 2], >, 22);
    g_assert_cmpfloat(parts[PARTS / 2], <, 38);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guard-shares/30-70", test_shares);
    return g_test_run();
}
