/* SPDX-License-Identifier: MIT */
/* When a slice that was suspended for room goes on: room, for some time, and no to and fro. */
#include "host-agent/model/way_back.h"

#define GIB    (G_GUINT64_CONSTANT(1) << 30)
#define SECOND ((gint64)G_USEC_PER_SEC)
#define MARK   GIB

static void assert_open(WayBack *way, guint64 free, gint64 at, gboolean is_open)
{
    g_assert_cmpint(way_back_is_open(way, free, MARK, at * SECOND), ==, is_open);
}

/* Its memory, a little more, and the mark must be free for a minute without a break. */
static void test_room(void)
{
    WayBack way = {0};

    way_back_begin(&way, 10 * GIB, 5 * SECOND);
    assert_open(&way, 12 * GIB, 10, FALSE);
    assert_open(&way, 12 * GIB, 69, FALSE);
    assert_open(&way, 11 * GIB, 69, FALSE); /* just its own */
    assert_open(&way, 12 * GIB, 71, FALSE);
    assert_open(&way, GIB / 2, 100, FALSE);
    assert_open(&way, 12 * GIB, 110, FALSE);
    assert_open(&way, 12 * GIB, 169, FALSE);
    assert_open(&way, 12 * GIB, 170, TRUE);
}

/* Whoever had to leave again soon waits twice as long, up to 16 minutes; and then again a minute.
 */
static void test_flaps(void)
{
    static const gint64 waits[] = {60, 120, 240, 480, 960, 960};
    WayBack way = {0};
    gint64 at = 1;

    for (guint i = 0; i < G_N_ELEMENTS(waits); i++) {
        way_back_begin(&way, GIB, at * SECOND);
        assert_open(&way, 4 * GIB, at, FALSE);
        assert_open(&way, 4 * GIB, at + waits[i] - 1, FALSE);
        at += waits[i];
        assert_open(&way, 4 * GIB, at, TRUE);
        at += WAY_BACK_EARLY_S - 1;
    }
    at += 1;
    way_back_begin(&way, GIB, at * SECOND);
    assert_open(&way, 4 * GIB, at, FALSE);
    assert_open(&way, 4 * GIB, at + 60, TRUE);
}

static void test_fails(void)
{
    WayBack way = {0};

    way_back_begin(&way, GIB, 0);
    assert_open(&way, 4 * GIB, 1, FALSE);
    assert_open(&way, 4 * GIB, 61, TRUE);
    way_back_fail(&way);
    assert_open(&way, 4 * GIB, 62, FALSE);
    assert_open(&way, 4 * GIB, 181, FALSE);
    assert_open(&way, 4 * GIB, 182, TRUE);
}

/* The room that there was is another's. */
static void test_closed(void)
{
    WayBack way = {0};

    way_back_begin(&way, GIB, 0);
    assert_open(&way, 4 * GIB, 1, FALSE);
    way_back_close(&way);
    assert_open(&way, 4 * GIB, 61, FALSE);
    assert_open(&way, 4 * GIB, 121, TRUE);
}

/* Of a slice whose memory is not known nobody knows whether there is room. */
static void test_unknown(void)
{
    WayBack way = {0};

    way_back_begin(&way, 0, 0);
    assert_open(&way, 80 * GIB, 1, FALSE);
    assert_open(&way, 80 * GIB, 1000, FALSE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/way-back/room", test_room);
    g_test_add_func("/way-back/flaps", test_flaps);
    g_test_add_func("/way-back/fails", test_fails);
    g_test_add_func("/way-back/closed", test_closed);
    g_test_add_func("/way-back/unknown", test_unknown);
    return g_test_run();
}
