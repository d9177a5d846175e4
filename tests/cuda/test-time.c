// SPDX-License-Identifier: MIT
/*
 * GPU time: programs in two slices of one card keep to their shares. What counts is the work that
 * has ended, in the card's own time. Without slices, the same programs share alike.
 */
#include "fake.h"
#include "kit.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GPU  "0000:3b:00.0"
#define MS   1000000u
#define WARM (300 * MS)
/* What the card does in a part of the time, and how many parts are looked at. */
#define PART  (400 * MS)
#define PARTS 7

/**
 * struct seen - by test and programs
 * @done: nanoseconds of work that has ended, of each program
 */
struct seen {
    _Atomic uint64_t done[2];
};

/**
 * struct load - what a program does again and again
 * @ns: of one launch
 * @launches: until it waits for them
 */
struct load {
    uint64_t ns;
    unsigned int launches;
};

static struct seen *seen;
static struct load loads[2];

static void work(unsigned int number)
{
    const char *slices[] = {"only-a", "only-b"};
    g_autofree char *dir = g_build_filename(kit_live.root, slices[number], NULL);
    const struct load *load = &loads[number];

    if (g_getenv("VGPU_GOVERNOR_SLICES"))
        g_setenv("VGPU_GOVERNOR_SLICES", dir, TRUE);
    kit_context();
    for (;;) {
        for (unsigned int i = 0; i < load->launches; i++)
            ok(cuLaunchKernel((CUfunction)(uintptr_t)load->ns, 1, 1, 1, 32, 1, 1, 0, NULL, NULL,
                              NULL));
        ok(cuStreamSynchronize(NULL));
        seen->done[number] += load->ns * load->launches;
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

/* GPU/SLICE, in a directory of its own. */
static void show(const char *slice)
{
    g_autofree char *name = g_strconcat("only-", slice, NULL);
    g_autofree char *dir = g_build_filename(kit_live.root, name, GPU, NULL);
    g_autofree char *link = g_build_filename(dir, slice, NULL);
    g_autofree char *of = g_build_filename(kit_live.root, "run/vgpu/slices", slice, NULL);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_assert_cmpint(symlink(of, link), ==, 0);
}

static void open_slices(const char *a, const char *b)
{
    const char *slices[] = {"a", a, "b", b, NULL};
    g_autofree char *card = NULL;

    live_open(&kit_live, slices);
    show("a");
    show("b");
    card = g_build_filename(kit_live.root, "card", NULL);
    g_setenv("FAKE_CUDA_CARD", card, TRUE);
    g_setenv("VGPU_GOVERNOR_SLICES", "changed by each program", TRUE);
}

/* Until the card has done so much for both. */
static void wait_for_work(uint64_t ns)
{
    uint64_t from = seen->done[0] + seen->done[1];

    while (seen->done[0] + seen->done[1] < from + ns)
        g_usleep(1000);
}

/* The share of the first program's work while the card does so much for both, per cent. */
static double share_of(uint64_t ns)
{
    uint64_t before[2] = {seen->done[0], seen->done[1]}, did[2];

    wait_for_work(ns);
    did[0] = seen->done[0] - before[0];
    did[1] = seen->done[1] - before[1];
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

    seen->done[0] = seen->done[1] = 0;
    kit_start(work_a);
    kit_start(work_b);
    wait_for_work(WARM);
    for (unsigned int i = 0; i < PARTS; i++) {
        parts[i] = share_of(PART);
        g_test_message("%.1f %%", parts[i]);
    }
    kit_kill_all();
    qsort(parts, PARTS, sizeof(parts[0]), compare);
    return parts[PARTS / 2];
}

/* @within: less than half of the way to what it would be without the door. */
static void assert_share(double part, double expected, double within)
{
    g_assert_cmpfloat(part, >, expected - within);
    g_assert_cmpfloat(part, <, expected + within);
}

/*
 * Loads of the same kind, waited for often or not. Kernels are long, so that on a busy machine,
 * too, it is the card that programs wait for, and not a processor.
 */
static void test_share(void)
{
    static const struct load kinds[] = {{2000000, 2}, {1000000, 6}, {4000000, 1}};

    for (unsigned int i = 0; i < G_N_ELEMENTS(kinds); i++) {
        open_slices("[slice]\nweight=30\n", "[slice]\nweight=70\n");
        loads[0] = loads[1] = kinds[i];
        assert_share(share(), 30, 8);
        live_close(&kit_live);
    }
}

/* Kernels of different length get time, not turns, by which it would be 80 %. */
static void test_unlike(void)
{
    open_slices("[slice]\nweight=50\n", "[slice]\nweight=50\n");
    loads[0] = (struct load){4000000, 2};
    loads[1] = (struct load){1000000, 8};
    assert_share(share(), 50, 12);
    live_close(&kit_live);
}

/* That is the door's doing. */
static void test_without(void)
{
    open_slices("[slice]\nweight=30\n", "[slice]\nweight=70\n");
    g_unsetenv("VGPU_GOVERNOR_SLICES");
    loads[0] = loads[1] = (struct load){2000000, 2};
    assert_share(share(), 50, 8);
    live_close(&kit_live);
}

#define LAUNCHES 200
#define SHORT_NS 20000

static unsigned int (*count_of)(const char *name);

static void launch(uint64_t ns, CUstream stream)
{
    ok(cuLaunchKernel((CUfunction)(uintptr_t)ns, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

/* A program of slice a, which is measured because it has a cap. */
static void begin_program(void)
{
    g_autofree char *dir = g_build_filename(kit_live.root, "only-a", NULL);

    g_setenv("VGPU_GOVERNOR_SLICES", dir, TRUE);
    kit_context();
    *(void **)&count_of = kit_driver("fake_count");
    /* From its first launch on the arbiter sees it, and measures it. */
    while (!count_of("cuEventRecord")) {
        launch(SHORT_NS, NULL);
        ok(cuStreamSynchronize(NULL));
    }
}

static void run_measured(void (*program)(void))
{
    open_slices("[slice]\ncap=50\nhard=true\n", "[slice]\n");
    kit_run(program);
    live_close(&kit_live);
}

/* An event costs more than a launch: there are two for many launches. */
static void gathered(void)
{
    unsigned int before;

    begin_program();
    before = count_of("cuEventRecord");
    for (unsigned int i = 0; i < LAUNCHES; i++)
        launch(SHORT_NS, NULL);
    g_assert_cmpuint(count_of("cuEventRecord") - before, >, 2);
    g_assert_cmpuint(count_of("cuEventRecord") - before, <, LAUNCHES / 2);
}

/* Any call of ours would be recorded, or end the capture. */
static void capturing(void)
{
    unsigned int before;

    begin_program();
    before = count_of("cuEventRecord");
    for (unsigned int i = 0; i < LAUNCHES; i++)
        launch(4 * MS, FAKE_CAPTURING);
    g_assert_cmpuint(count_of("cuEventRecord"), ==, before);
}

/* The driver ends a context's events with it, and the rest of the work is charged. */
static void context_ends(void)
{
    begin_program();
    for (unsigned int i = 0; i < 20; i++) {
        CUcontext context = NULL;

        ok(cuCtxCreate_v2(&context, 0, 0));
        launch(2 * MS, NULL);
        launch(SHORT_NS, (CUstream)(uintptr_t)0x10);
        ok(cuCtxDestroy_v2(context));
    }
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr at, unsigned int value,
                                unsigned int flags);

/* A stream waits for what a later launch of another stream would bring. */
static void waits(void)
{
    CUstream waiting = (CUstream)(uintptr_t)0x110, other = (CUstream)(uintptr_t)0x220;

    begin_program();
    ok(cuStreamWaitValue32_v2(waiting, 0, 1, 0));
    for (unsigned int i = 0; i < 4; i++)
        launch(MS, waiting);
    for (unsigned int i = 0; i < 20; i++)
        launch(MS, other);
    ok(cuStreamSynchronize(other));
}

static void test_gathered(void)
{
    run_measured(gathered);
}

static void test_capturing(void)
{
    run_measured(capturing);
}

static void test_context_ends(void)
{
    run_measured(context_ends);
}

static void test_waits(void)
{
    run_measured(waits);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_test_add_func("/time/share", test_share);
    g_test_add_func("/time/unlike", test_unlike);
    g_test_add_func("/time/without", test_without);
    g_test_add_func("/time/gathered", test_gathered);
    g_test_add_func("/time/capturing", test_capturing);
    g_test_add_func("/time/context-ends", test_context_ends);
    g_test_add_func("/time/waits", test_waits);
    return g_test_run();
}
