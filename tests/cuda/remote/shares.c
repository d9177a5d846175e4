// SPDX-License-Identifier: MIT
#include "remote/shares.h"

#include <fcntl.h>
#include <glib.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* Lines: twelve fills, 24 ms of the card. */
#define WARM  15
#define PART  20
#define PARTS 15
/* Per cent: of all lines of two programs that had a processor when they wanted one; else of most
 * parts of the time, for a program that gets none for a while has no work for the card. */
#define OFF_ALWAYS 1.0
#define OFF_MOSTLY 8.0

static bool is_first;

static unsigned int did[2];
static int outputs[2];

/* Lines of a program so far. */
static unsigned int count_lines(unsigned int program)
{
    char text[4096];
    ssize_t got;

    while ((got = read(outputs[program], text, sizeof(text))) > 0)
        for (ssize_t i = 0; i < got; i++)
            did[program] += text[i] == '\n';
    g_assert_cmpint(got, !=, 0); /* it has ended */
    return did[program];
}

/* Until both have so many more. */
static void await_lines(unsigned int wanted, unsigned int now[2])
{
    unsigned int before[2] = {did[0], did[1]};

    do {
        g_usleep(1000);
        for (unsigned int i = 0; i < 2; i++)
            now[i] = count_lines(i) - before[i];
    } while (now[0] + now[1] < wanted);
}

static double first_of(const unsigned int lines[2])
{
    return 100.0 * lines[0] / (lines[0] + lines[1]);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void shares_run_first(void)
{
    const struct sched_param least = {.sched_priority = sched_get_priority_min(SCHED_RR)};

    is_first = sched_setscheduler(0, SCHED_RR, &least) == 0;
}

static void begin(const int of[2])
{
    unsigned int now[2];

    for (unsigned int i = 0; i < 2; i++) {
        outputs[i] = of[i];
        did[i] = 0;
        g_assert_cmpint(fcntl(of[i], F_SETFL, O_NONBLOCK), ==, 0);
    }
    while (!count_lines(0) || !count_lines(1))
        g_usleep(1000);
    await_lines(WARM, now);
}

/* Of all parts together; @median: of most. */
static double measure(double *median)
{
    unsigned int sum[2] = {0}, now[2];
    double parts[PARTS];

    for (unsigned int i = 0; i < PARTS; i++) {
        await_lines(PART, now);
        parts[i] = first_of(now);
        sum[0] += now[0];
        sum[1] += now[1];
    }
    qsort(parts, PARTS, sizeof(parts[0]), compare);
    *median = parts[PARTS / 2];
    g_test_message("%.1f %% of %u, in most parts %.1f %%", first_of(sum), sum[0] + sum[1], *median);
    return first_of(sum);
}

bool shares_are(const int of[2], double expected)
{
    double all, median;

    begin(of);
    all = measure(&median);
    return is_first ? fabs(all - expected) < OFF_ALWAYS : fabs(median - expected) < OFF_MOSTLY;
}
