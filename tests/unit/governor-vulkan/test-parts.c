// SPDX-License-Identifier: MIT
/* The layer's parts that know nothing of Vulkan. */
#include <glib.h>

#include "handle_map.h"
#include "learn.h"
#include "ticks.h"

static void test_ticks(void)
{
    struct ticks ticks = {.bits = 64, .period = 10};

    g_assert_cmpuint(ticks_measure(&ticks, 1000, 1500), ==, 5000);
    /* Began while the one before it ran. */
    g_assert_cmpuint(ticks_measure(&ticks, 1200, 1800), ==, 3000);
    /* Ran inside it. */
    g_assert_cmpuint(ticks_measure(&ticks, 1300, 1700), ==, 0);
    g_assert_cmpuint(ticks_measure(&ticks, 2000, 2001), ==, 10);
}

static void test_ticks_go_round(void)
{
    struct ticks ticks = {.bits = 36, .period = 1};
    uint64_t last = (1ull << 36) - 1;

    g_assert_cmpuint(ticks_measure(&ticks, last - 9, 90), ==, 100);
    g_assert_cmpuint(ticks_measure(&ticks, last, 190), ==, 100);
    g_assert_cmpuint(ticks_measure(&ticks, 200, 250), ==, 50);
}

static void test_estimates(void)
{
    struct learned learned = {0};
    uint64_t one = learn_key(0, 77), two = learn_key(one, 77);

    g_assert_cmpuint(one, !=, two);
    g_assert_cmpuint(learn_estimate(&learned, one, 1), ==, LEARN_UNKNOWN_NS);
    learn_add(&learned, one, 1, 4000);
    g_assert_cmpuint(learn_estimate(&learned, one, 1), ==, 4000);
    /* Unknown, but as many; unknown, and more of them than ever. */
    g_assert_cmpuint(learn_estimate(&learned, two, 1), ==, 4000);
    g_assert_cmpuint(learn_estimate(&learned, two, 2), ==, LEARN_UNKNOWN_NS);
    learn_add(&learned, one, 1, 8000);
    g_assert_cmpuint(learn_estimate(&learned, one, 1), ==, 5000);
    learn_add(&learned, one, 1, 1000);
    g_assert_cmpuint(learn_estimate(&learned, one, 1), ==, 4000);
    g_assert_false(learn_stands_in(&learned, two));
    learn_add(&learned, two, 5000, 77);
    g_assert_cmpuint(learn_estimate(&learned, 1, 9999), ==, 77);
}

/*
 * What is charged for work that takes 1 ms or 10 us, by what the program would do if it knew which
 * eighth is measured.
 */
static void test_estimates_sample(void)
{
    struct learned learned = {.random = 4711};
    uint64_t key = learn_key(0, 77), charged = 0, took = 0;
    unsigned measured = 0, rounds = 40000;

    learn_add(&learned, key, 1, 10000);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t ns = i % 8 == 7 ? 10000 : 100000;

        took += ns;
        if (learn_stands_in(&learned, key)) {
            charged += learn_estimate(&learned, key, 1);
            continue;
        }
        charged += ns;
        learn_add(&learned, key, 1, ns);
        measured++;
    }
    g_test_message("charged %.3f of what it took; measured %.3f", (double)charged / (double)took,
                   (double)measured / rounds);
    g_assert_cmpfloat((double)charged / (double)took, >, 0.97);
    g_assert_cmpfloat((double)charged / (double)took, <, 1.03);
    /* Work that is always as long costs few measurements. */
    for (unsigned i = measured = 0; i < 200; i++)
        learn_add(&learned, key, 1, 100000);
    for (unsigned i = 0; i < rounds; i++) {
        if (learn_stands_in(&learned, key))
            continue;
        learn_add(&learned, key, 1, 100000 + 100 * (i % 10));
        measured++;
    }
    g_assert_cmpuint(measured, >, rounds / 8 - rounds / 80);
    g_assert_cmpuint(measured, <, rounds / 8 + rounds / 80);
}

static void count(void *record, void *data)
{
    (void)record;
    (*(unsigned int *)data)++;
}

/* Against a table that is known to be right, through many additions and removals. */
static void test_handle_map(void)
{
    g_autoptr(GHashTable) right = g_hash_table_new(NULL, NULL);
    struct handle_map map;
    unsigned int left = 0;

    handle_map_init(&map);
    g_assert_null(handle_map_find(&map, 0));
    g_assert_null(handle_map_remove(&map, 1));
    for (int i = 0; i < 20000; i++) {
        gsize handle = (gsize)g_test_rand_int_range(1, 500) * 4096;
        gpointer known = g_hash_table_lookup(right, (gpointer)handle);

        g_assert_true(handle_map_find(&map, handle) == known);
        if (known) {
            g_assert_true(handle_map_remove(&map, handle) == known);
            g_hash_table_remove(right, (gpointer)handle);
        } else {
            g_assert_true(handle_map_add(&map, handle, (void *)(handle + 1)));
            g_hash_table_insert(right, (gpointer)handle, (gpointer)(handle + 1));
        }
    }
    handle_map_destroy(&map, count, &left);
    g_assert_cmpuint(left, ==, g_hash_table_size(right));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ticks/overlap", test_ticks);
    g_test_add_func("/ticks/go-round", test_ticks_go_round);
    g_test_add_func("/estimates", test_estimates);
    g_test_add_func("/estimates/sample", test_estimates_sample);
    g_test_add_func("/handle-map", test_handle_map);
    return g_test_run();
}
