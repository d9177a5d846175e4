// SPDX-License-Identifier: MIT
/* Division of time that several used at once, against one that has an array of all instants. */
#include "coverage.h"
#include "timeline.h"

#include <glib.h>

#define INSTANTS  400
#define PROCESSES 6
#define SLICES    3

/* Process i is of slice i modulo SLICES. */
struct account {
    struct timeline timeline;
    struct coverage covered[PROCESSES];
    unsigned process;
    double charged[SLICES];
};

static void charge(void *data, uint32_t slice, double ns)
{
    ((struct account *)data)->charged[slice] += ns;
}

static void on_new(void *data, uint64_t begin_at, uint64_t end_at)
{
    struct account *account = data;

    timeline_add(&account->timeline, account->process % SLICES, begin_at, end_at, charge, account);
}

static uint64_t add(struct account *account, unsigned process, uint64_t begin_at, uint64_t end_at)
{
    account->process = process;
    return coverage_add(&account->covered[process], begin_at, end_at, on_new, account);
}

static void account_free(struct account *account)
{
    timeline_clear(&account->timeline);
    g_free(account);
}

/* One after the other, whole; at once, half each; whoever is told first. */
static void test_two(void)
{
    for (unsigned first = 0; first < 2; first++) {
        struct account *account = g_new0(struct account, 1);

        g_assert_cmpuint(add(account, first, 100, 200), ==, 100);
        g_assert_cmpuint(add(account, 1 - first, 150, 250), ==, 100);
        g_assert_cmpfloat(account->charged[0], ==, 75);
        g_assert_cmpfloat(account->charged[1], ==, 75);
        /* It is known. */
        g_assert_cmpuint(add(account, first, 120, 180), ==, 0);
        g_assert_cmpfloat(account->charged[0] + account->charged[1], ==, 150);
        /* What is one time for the same processes is one segment. */
        g_assert_cmpuint(add(account, first, 200, 250), ==, 50);
        g_assert_cmpuint(account->timeline.count, ==, 2);
        account_free(account);
    }
}

static void compare(const bool used[PROCESSES][INSTANTS], const struct account *account)
{
    double wanted[SLICES] = {0};

    for (unsigned i = 0; i < INSTANTS; i++) {
        unsigned count = 0;

        for (unsigned j = 0; j < PROCESSES; j++)
            count += used[j][i];
        for (unsigned j = 0; j < PROCESSES; j++)
            wanted[j % SLICES] += used[j][i] ? 1.0 / count : 0;
    }
    for (unsigned j = 0; j < SLICES; j++)
        g_assert_cmpfloat(ABS(wanted[j] - account->charged[j]), <, 1e-6);
}

static void test_random(void)
{
    for (unsigned run = 0; run < 300; run++) {
        struct account *account = g_new0(struct account, 1);
        const struct timeline *timeline = &account->timeline;
        bool used[PROCESSES][INSTANTS] = {0};

        for (unsigned i = 0; i < 40; i++) {
            unsigned process = (unsigned)g_test_rand_int_range(0, PROCESSES), added = 0;
            unsigned begin = (unsigned)g_test_rand_int_range(0, INSTANTS);
            unsigned length = (unsigned)g_test_rand_int_range(0, 60);
            unsigned end = MIN(begin + length, INSTANTS);

            for (unsigned at = begin; at < end; at++) {
                added += !used[process][at];
                used[process][at] = true;
            }
            g_assert_cmpuint(add(account, process, begin, end), ==, added);
            compare(used, account);
            for (unsigned k = 1; k < timeline->count; k++)
                g_assert_cmpuint(timeline->segments[k].begin_at, >=,
                                 timeline->segments[k - 1].end_at);
        }
        account_free(account);
    }
}

/* The room is bounded: what is oldest is forgotten, and is not charged again. */
static void test_forgets(void)
{
    struct account *account = g_new0(struct account, 1);
    struct timeline *timeline = &account->timeline;

    for (uint64_t i = 0; i < 10000; i++) {
        timeline_add(timeline, (uint32_t)(i % SLICES), 10 * i, 10 * i + 5, charge, account);
        g_assert_cmpuint(timeline->count, <, TIMELINE_SEGMENTS);
    }
    g_assert_cmpuint(timeline_add(timeline, 0, 0, 5000, charge, account), ==, 0);
    /* A span across all that is there, with a gap between each two. */
    timeline_add(timeline, 1, 0, 100000, charge, account);
    g_assert_cmpuint(timeline->count, <, TIMELINE_SEGMENTS);
    account_free(account);
}

/* However many use it at once, the time is charged once. */
static void test_crowd(void)
{
    struct account *account = g_new0(struct account, 1);

    for (uint32_t i = 0; i < 64; i++) {
        timeline_add(&account->timeline, i ? 1 : 0, 0, 6400, charge, account);
        g_assert_cmpfloat(ABS(account->charged[0] + account->charged[1] - 6400), <, 1e-6);
    }
    g_assert_cmpfloat(ABS(account->charged[0] - 100), <, 1e-6);
    account_free(account);
}

/*
 * Long work on one queue and short work again and again on another: the long one is not free,
 * though the process cannot remember all of the other's ends.
 */
static void test_long(void)
{
    struct coverage *covered = g_new0(struct coverage, 1);
    uint64_t sum = 0;

    for (uint64_t i = 0; i < 1000; i++)
        sum += coverage_add(covered, 100 * i, 100 * i + 1, NULL, NULL);
    sum += coverage_add(covered, 0, 100000, NULL, NULL);
    g_test_message("%d of 100000", (int)sum);
    g_assert_cmpuint(sum, >=, 100000);
    g_assert_cmpuint(sum, <=, 101000);
    g_free(covered);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/timeline/two", test_two);
    g_test_add_func("/governor/timeline/random", test_random);
    g_test_add_func("/governor/timeline/forgets", test_forgets);
    g_test_add_func("/governor/timeline/crowd", test_crowd);
    g_test_add_func("/governor/timeline/long", test_long);
    return g_test_run();
}
