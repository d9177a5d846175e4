// SPDX-License-Identifier: MIT
/* Times of events by the host's clock, where each end is seen some time after it was. */
#include "event_clock.h"

#include <glib.h>

#define US     1000.0
#define MS     (1000 * US)
#define BEGINS (7000 * MS)

/*
 * Ends 3 ms apart that are seen after 20 us to 1 ms, by clocks that run apart by @ppm. Returns the
 * largest error of the last half.
 */
static double worst(double ppm)
{
    struct event_clock clock = {0};
    double worst_ns = 0;
    GRand *random = g_rand_new_with_seed(1);

    for (unsigned int i = 0; i < 2000; i++) {
        double at = BEGINS + i * 3 * MS, after = i ? 3 * MS * (1 + ppm * 1e-6) : 0;
        double seen = at + g_rand_double_range(random, 20 * US, MS);
        uint64_t told = event_clock_see(&clock, after, (uint64_t)seen);

        event_clock_advance(&clock, after);
        g_assert_cmpuint(told, <=, (uint64_t)seen);
        if (i >= 1000)
            worst_ns = MAX(worst_ns, ABS((double)told - at));
    }
    g_rand_free(random);
    g_test_message("%.0f ppm: %.1f us", ppm, worst_ns / US);
    return worst_ns;
}

static void test_delays(void)
{
    g_assert_cmpfloat(worst(0), <, 100 * US);
    g_assert_cmpfloat(worst(10), <, 100 * US);
    g_assert_cmpfloat(worst(-10), <, 100 * US);
}

/* Of several streams, ends are not seen in their order. */
static void test_order(void)
{
    struct event_clock clock = {0};

    g_assert_cmpuint(event_clock_see(&clock, 0, 1000000), ==, 1000000);
    event_clock_advance(&clock, 0);
    g_assert_cmpuint(event_clock_see(&clock, 500, 1001000), ==, 1000500);
    event_clock_advance(&clock, 500);
    g_assert_cmpuint(event_clock_see(&clock, -300, 1001100), ==, 1000200);
    /* Another context's events have nothing to do with these. */
    event_clock_restart(&clock);
    g_assert_cmpuint(event_clock_see(&clock, 0, 5000000), ==, 5000000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda/event-clock/delays", test_delays);
    g_test_add_func("/cuda/event-clock/order", test_order);
    return g_test_run();
}
