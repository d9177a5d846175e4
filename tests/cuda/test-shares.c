// SPDX-License-Identifier: MIT
/*
 * Programs in two slices of one card keep to their shares, of kernels and of copies. What counts is
 * the work that has ended, in the card's own time; the programs and the arbiter need a processor
 * when it is their turn, so nothing else should run beside this test.
 */
#include "fake.h"
#include "kit.h"

#include <stdlib.h>
#include <sys/mman.h>

#define MS   1000000u
#define WARM (300 * MS)
/* What the card does in a part of the time, and how many parts are looked at. */
#define PART  (400 * MS)
#define PARTS 7

/**
 * struct load - what a program does again and again
 * @ns: of one launch or copy
 * @calls: until it waits for them
 * @copies: copies, no kernels
 */
struct load {
    uint64_t ns;
    unsigned int calls;
    bool copies;
};

static struct load loads[2];

/* Nanoseconds of work that has ended, of each program. */
static _Atomic uint64_t *done;

/* @in_slice: the programs are in slices. */
static bool in_slice = true;

static void work(unsigned int number)
{
    const char *slices[] = {"a", "b"};
    const struct load *load = &loads[number];

    kit_enter(in_slice ? slices[number] : NULL);
    for (;;) {
        for (unsigned int i = 0; i < load->calls; i++)
            if (load->copies)
                ok(cuMemcpyHtoDAsync_v2(0, NULL, load->ns * FAKE_COPIES, NULL));
            else
                kit_launch(kit_kernel(load->ns), NULL);
        ok(cuStreamSynchronize(NULL));
        done[number] += load->ns * load->calls;
    }
}

static void work_a(void)
{
    work(0);
}

static void work_b(void)
{
    work(1);
}

/* The share of the first program's work while the card does so much for both, per cent. */
static double share_of(uint64_t ns)
{
    uint64_t before[2] = {done[0], done[1]}, did[2];

    do {
        g_usleep(1000);
        did[0] = done[0] - before[0];
        did[1] = done[1] - before[1];
    } while (did[0] + did[1] < ns);
    return 100.0 * (double)did[0] / (double)(did[0] + did[1]);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/*
 * The share in most of the time: a program that gets no processor for a while has no work for the
 * card, and the other rightly takes what is left.
 */
static double share(void)
{
    double parts[PARTS];

    done[0] = done[1] = 0;
    kit_start(work_a);
    kit_start(work_b);
    share_of(WARM);
    for (unsigned int i = 0; i < PARTS; i++) {
        parts[i] = share_of(PART);
        g_test_message("%.1f %%", parts[i]);
    }
    g_test_message("charged for 1 ms of kernels: %.2f and %.2f ms",
                   (double)live_status(&kit_live, "a", "gpu_ns") / (double)done[0],
                   (double)live_status(&kit_live, "b", "gpu_ns") / (double)done[1]);
    kit_kill_all();
    qsort(parts, PARTS, sizeof(parts[0]), compare);
    return parts[PARTS / 2];
}

/* @within: less than half of the way to what it would be without the door. */
static void assert_share(struct load a, struct load b, double expected, double within)
{
    double part;

    loads[0] = a;
    loads[1] = b;
    part = share();
    g_assert_cmpfloat(part, >, expected - within);
    g_assert_cmpfloat(part, <, expected + within);
}

/*
 * Loads of the same kind, waited for often or not. Kernels are long, so that it is the card that
 * programs wait for, and not a processor.
 */
static void test_kernels(void)
{
    static const struct load kinds[] = {{2 * MS, 2, false}, {1 * MS, 6, false}, {4 * MS, 1, false}};

    for (unsigned int i = 0; i < G_N_ELEMENTS(kinds); i++) {
        kit_open_two("[slice]\nweight=30\n", "[slice]\nweight=70\n");
        assert_share(kinds[i], kinds[i], 30, 8);
        kit_close();
    }
}

/* Kernels of different length get time, not turns, by which it would be 80 %. */
static void test_unlike(void)
{
    kit_open_two("[slice]\nweight=50\n", "[slice]\nweight=50\n");
    assert_share((struct load){4 * MS, 2, false}, (struct load){1 * MS, 8, false}, 50, 12);
    kit_close();
}

/* That is the door's doing. */
static void test_without(void)
{
    kit_open_two("[slice]\nweight=30\n", "[slice]\nweight=70\n");
    in_slice = false;
    assert_share((struct load){2 * MS, 2, false}, (struct load){2 * MS, 2, false}, 50, 8);
    in_slice = true;
    kit_close();
}

/* Without a measure of copies, each would have half. */
static void test_copies(void)
{
    kit_open_two("[slice]\nweight=30\n", "[slice]\nweight=70\n");
    assert_share((struct load){2 * MS, 2, true}, (struct load){2 * MS, 2, true}, 30, 8);
    kit_close();
}

/* The card copies beside kernels, so a copy does not wait for another slice's turn to compute. */
static void test_copies_beside_kernels(void)
{
    kit_open_two("[slice]\nweight=30\n", "[slice]\nweight=70\n");
    assert_share((struct load){2 * MS, 2, true}, (struct load){2 * MS, 2, false}, 50, 8);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    done = mmap(NULL, 2 * sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_test_add_func("/shares/kernels", test_kernels);
    g_test_add_func("/shares/unlike", test_unlike);
    g_test_add_func("/shares/without", test_without);
    g_test_add_func("/shares/copies", test_copies);
    g_test_add_func("/shares/copies-beside-kernels", test_copies_beside_kernels);
    return g_test_run();
}
