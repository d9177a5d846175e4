// SPDX-License-Identifier: MIT
/* Division of time that several used at once, against one that has an array of all instants. */
#include "timeline.h"

#include <glib.h>
#include <stdbool.h>

#define INSTANTS 400
#define OWNERS   5

struct account {
    double charged[OWNERS];
};

static void charge(void *data, uint32_t owner, double ns)
{
    ((struct account *)data)->charged[owner] += ns;
}

/* One after the other, whole; at once, half each; whoever is told first. */
static void test_two(void)
{
    for (unsigned first = 0; first < 2; first++) {
        struct timeline timeline = {0};
        struct account account = {0};

        g_assert_cmpuint(timeline_add(&timeline, first, 100, 200, charge, &account), ==, 100);
        g_assert_cmpuint(timeline_add(&timeline, 1 - first, 150, 250, charge, &account), ==, 100);
        g_assert_cmpfloat(account.charged[0], ==, 75);
        g_assert_cmpfloat(account.charged[1], ==, 75);
        /* It is known. */
        g_assert_cmpuint(timeline_add(&timeline, first, 120, 180, charge, &account), ==, 0);
        g_assert_cmpfloat(account.charged[0] + account.charged[1], ==, 150);
        /* What is one time for the same owners is one segment. */
        g_assert_cmpuint(timeline_add(&timeline, first, 200, 250, charge, &account), ==, 50);
        g_assert_cmpuint(timeline.count, ==, 2);
    }
}

static void compare(const bool used[OWNERS][INSTANTS], const struct account *account)
{
    double wanted[OWNERS] = {0};

    for (unsigned i = 0; i < INSTANTS; i++) {
        unsigned count = 0;

        for (unsigned j = 0; j < OWNERS; j++)
            count += used[j][i];
        for (unsigned j = 0; j < OWNERS; j++)
            wanted[j] += used[j][i] ? 1.0 / count : 0;
    }
    for (unsigned j = 0; j < OWNERS; j++)
        g_assert_cmpfloat(ABS(wanted[j] - account->charged[j]), <, 1e-6);
}

static void test_random(void)
{
    for (unsigned run = 0; run < 300; run++) {
        bool used[OWNERS][INSTANTS] = {0};
        struct timeline timeline = {0};
        struct account account = {0};

        for (unsigned i = 0; i < 40; i++) {
            unsigned owner = (unsigned)g_test_rand_int_range(0, OWNERS), added = 0;
            unsigned begin = (unsigned)g_test_rand_int_range(0, INSTANTS);
            unsigned length = (unsigned)g_test_rand_int_range(0, 60);
            unsigned end = MIN(begin + length, INSTANTS);

            for (unsigned at = begin; at < end; at++) {
                added += !used[owner][at];
                used[owner][at] = true;
            }
            g_assert_cmpuint(timeline_add(&timeline, owner, begin, end, charge, &account), ==,
                             added);
            compare(used, &account);
            for (unsigned k = 1; k < timeline.count; k++)
                g_assert_cmpuint(timeline.segments[k].begin_at, >=,
                                 timeline.segments[k - 1].end_at);
        }
    }
}

/* The room is bounded: what is oldest is forgotten, and is not charged again. */
static void test_forgets(void)
{
    struct timeline timeline = {0};
    struct account account = {0};

    for (uint64_t i = 0; i < 10000; i++) {
        timeline_add(&timeline, (uint32_t)(i % OWNERS), 10 * i, 10 * i + 5, charge, &account);
        g_assert_cmpuint(timeline.count, <, TIMELINE_SEGMENTS);
    }
    g_assert_cmpuint(timeline_add(&timeline, 0, 0, 5000, charge, &account), ==, 0);
    /* A span across all that is there, with a gap between each two. */
    timeline_add(&timeline, 1, 0, 100000, charge, &account);
    g_assert_cmpuint(timeline.count, <, TIMELINE_SEGMENTS);
}

static void add_up(void *data, uint32_t owner, double ns)
{
    (void)owner;
    *(double *)data += ns;
}

/* More at once than can be remembered: the last pays its part, and nobody less for it. */
static void test_crowd(void)
{
    struct timeline timeline = {0};
    double sum = 0;

    for (uint32_t i = 0; i < TIMELINE_OWNERS; i++)
        timeline_add(&timeline, i, 0, 900, add_up, &sum);
    g_assert_cmpfloat(ABS(sum - 900), <, 1e-6);
    timeline_add(&timeline, TIMELINE_OWNERS, 0, 900, add_up, &sum);
    g_assert_cmpfloat(ABS(sum - 1000), <, 1e-6);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/timeline/two", test_two);
    g_test_add_func("/governor/timeline/random", test_random);
    g_test_add_func("/governor/timeline/forgets", test_forgets);
    g_test_add_func("/governor/timeline/crowd", test_crowd);
    return g_test_run();
}
