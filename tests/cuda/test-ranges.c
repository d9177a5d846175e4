// SPDX-License-Identifier: MIT
/* The maps of charges against models of them: random steps from a fixed seed. */
#include <glib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forks.h"
#include "mappings.h"
#include "ranges.h"

#define SEED  20261124
#define STEPS 200000
#define KEYS  600

static const CUcontext contexts[] = {NULL, (CUcontext)16, (CUcontext)32};

/* Addresses as drivers give them out, handles that are near each other, and the ends of what a word
 * can be. */
static uint64_t key_of(unsigned int number)
{
    if (number == 0)
        return 0;
    if (number == 1)
        return UINT64_MAX;
    return number % 2 ? 0x7f0000000000ull + (uint64_t)number * (2 << 20) : 0x560000ull + number * 8;
}

struct model {
    bool there;
    struct charge charge;
};

static void check_same(const struct charge *a, const struct charge *b)
{
    g_assert_cmpuint(a->bytes, ==, b->bytes);
    g_assert_true(a->context == b->context);
}

static void step(GRand *rand, struct ranges *ranges, struct model *model)
{
    unsigned int number = (unsigned int)g_rand_int_range(rand, 0, KEYS);
    struct model *at = &model[number];
    struct charge charge = {.bytes = g_rand_int(rand),
                            .context = contexts[g_rand_int_range(rand, 0, 3)]};
    struct charge before = charge;
    int what = g_rand_int_range(rand, 0, 100);

    if (what < 50) {
        g_assert_true(ranges_put(ranges, key_of(number), &charge));
        check_same(&charge, &at->charge);
        *at = (struct model){.there = true, .charge = before};
    } else if (what < 90) {
        g_assert_cmpint(ranges_take(ranges, key_of(number), &charge), ==, at->there);
        if (at->there)
            check_same(&charge, &at->charge);
        *at = (struct model){0};
    } else {
        g_assert_cmpint(ranges_get(ranges, key_of(number), &charge), ==, at->there);
        if (at->there)
            check_same(&charge, &at->charge);
    }
}

/* All of a context, and nothing else. */
static void end_context(struct ranges *ranges, struct model *model, CUcontext context)
{
    uint64_t bytes = 0, had = 0;
    unsigned int count = 0, taken = 0;
    struct charge charge;

    for (unsigned int i = 0; i < KEYS; i++) {
        if (!model[i].there || model[i].charge.context != context)
            continue;
        bytes += model[i].charge.bytes;
        count++;
        model[i] = (struct model){0};
    }
    while (ranges_take_of(ranges, context, &charge)) {
        g_assert_true(charge.context == context);
        had += charge.bytes;
        taken++;
    }
    g_assert_cmpuint(taken, ==, count);
    g_assert_cmpuint(had, ==, bytes);
}

static void test_ranges(void)
{
    struct model *model = g_new0(struct model, KEYS);
    GRand *rand = g_rand_new_with_seed(SEED);

    for (unsigned int i = 0; i < STEPS; i++) {
        step(rand, &ranges_pointers, model);
        if (i % 1000 == 999)
            end_context(&ranges_pointers, model, contexts[1 + g_rand_int_range(rand, 0, 2)]);
    }
    for (unsigned int i = 0; i < 3; i++)
        end_context(&ranges_pointers, model, contexts[i]);
    for (unsigned int i = 0; i < RANGES_SHARDS; i++) {
        g_assert_cmpuint(ranges_pointers.shards[i].count, ==, 0);
        g_free(ranges_pointers.shards[i].at);
    }
    g_rand_free(rand);
    g_free(model);
}

/* The model: which mapping each page is of, by its number. */
#define PAGES 512

static void map_some(GRand *rand, struct mappings *mappings, unsigned int *pages,
                     unsigned int number)
{
    unsigned int first = (unsigned int)g_rand_int_range(rand, 0, PAGES);
    unsigned int count = (unsigned int)g_rand_int_range(rand, 1, 9);
    struct mapping mapping = {.at = (uint64_t)first << 21,
                              .bytes = (uint64_t)count << 21,
                              .physical = (struct physical *)(uintptr_t)number};

    for (unsigned int i = first; i < first + count; i++) {
        if (i >= PAGES || pages[i])
            return;
    }
    g_assert_true(mappings_make_room(mappings, 1));
    mappings_add(mappings, &mapping);
    for (unsigned int i = first; i < first + count; i++)
        pages[i] = number;
}

static void unmap_some(GRand *rand, struct mappings *mappings, unsigned int *pages)
{
    unsigned int index;

    if (!mappings->count)
        return;
    index = (unsigned int)g_rand_int_range(rand, 0, (int)mappings->count);
    for (unsigned int i = 0; i < PAGES; i++) {
        if (pages[i] == (uintptr_t)mappings->list[index].physical)
            pages[i] = 0;
    }
    mappings_remove(mappings, index);
}

static void look_all_over(const struct mappings *mappings, const unsigned int *pages)
{
    for (unsigned int i = 0; i < PAGES; i++) {
        const struct mapping *found = mappings_find(mappings, ((uint64_t)i << 21) + 12345);

        g_assert_cmpuint(found ? (uintptr_t)found->physical : 0, ==, pages[i]);
    }
    for (unsigned int i = 1; i < mappings->count; i++)
        g_assert_cmpuint(mappings->list[i - 1].at + mappings->list[i - 1].bytes, <=,
                         mappings->list[i].at);
}

static void test_mappings(void)
{
    struct mappings mappings = {0};
    unsigned int pages[PAGES] = {0};
    GRand *rand = g_rand_new_with_seed(SEED);

    for (unsigned int i = 1; i <= 20000; i++) {
        if (g_rand_int_range(rand, 0, 5) < 3)
            map_some(rand, &mappings, pages, i);
        else
            unmap_some(rand, &mappings, pages);
        if (i % 50 == 0)
            look_all_over(&mappings, pages);
    }
    g_rand_free(rand);
    g_free(mappings.list);
}

/* A child finds no lock held by a thread that it doesn't have, and nothing of its parent's. */
static void test_child(void)
{
    struct charge charge = {.bytes = 7};
    int status = -1;
    pid_t pid;

    g_assert_true(ranges_put(&ranges_arrays, 64, &charge));
    for (unsigned int i = 0; i < RANGES_SHARDS; i++)
        pthread_mutex_lock(&ranges_arrays.shards[i].lock);
    pid = fork();
    if (!pid) {
        alarm(20);
        ranges_forget_parent();
        _exit(ranges_take(&ranges_arrays, 64, &charge) ? 1 : 0);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
    for (unsigned int i = 0; i < RANGES_SHARDS; i++)
        pthread_mutex_unlock(&ranges_arrays.shards[i].lock);
    g_assert_true(ranges_take(&ranges_arrays, 64, &charge));
    for (unsigned int i = 0; i < RANGES_SHARDS; i++)
        g_free(ranges_arrays.shards[i].at);
}

/* Sums that would not fit into a word. */
static void test_rounding(void)
{
    g_assert_cmpuint(charge_of_alloc(1), ==, 1);
    g_assert_cmpuint(charge_of_alloc(1 << 20), ==, 1 << 20);
    g_assert_cmpuint(charge_of_alloc((1 << 20) + 1), ==, 2 << 20);
    g_assert_cmpuint(charge_of_alloc(2 << 20), ==, 2 << 20);
    g_assert_cmpuint(charge_of_alloc(UINT64_MAX), ==, UINT64_MAX);
    g_assert_cmpuint(charge_round(UINT64_MAX - 1, 512), ==, UINT64_MAX - 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ranges/ranges", test_ranges);
    g_test_add_func("/ranges/mappings", test_mappings);
    g_test_add_func("/ranges/child", test_child);
    g_test_add_func("/ranges/rounding", test_rounding);
    return g_test_run();
}
