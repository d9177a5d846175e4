// SPDX-License-Identifier: MIT
/* A slice that is alone on the card is not measured, and does not get far ahead of the card. */
#include "fake.h"
#include "kit.h"

#include <sys/mman.h>

#include "card.h"

#define MS 1000000u

/* The most work that waited on the card after a launch, and when it was. */
static _Atomic uint64_t *most;

static uint64_t waiting(void)
{
    uint64_t (*waiting_ns)(unsigned int) = NULL;

    *(void **)&waiting_ns = kit_driver("fake_waiting_ns");
    /* To compute. */
    return waiting_ns(0);
}

/* A second of work, launched at once. */
static void flood(const char *slice, uint64_t ns, unsigned int streams)
{
    kit_enter(slice);
    for (unsigned int i = 0; i < 1000 * MS / ns; i++) {
        kit_launch(kit_kernel(ns), (CUstream)(uintptr_t)(0x10 * (1 + i % streams)));
        *most = MAX(*most, waiting());
    }
}

static void flood_long(void)
{
    flood("a", 2 * MS, 1);
}

static void flood_short(void)
{
    flood("a", 50000, 1);
}

static void flood_streams(void)
{
    flood("a", MS, 5);
}

static void flood_outside(void)
{
    flood(NULL, 2 * MS, 1);
}

/* It could have work at any time. */
static void rests(void)
{
    kit_enter("b");
    for (;;)
        g_usleep(100000);
}

static uint64_t run_beside(void (*program)(void), void (*rival)(void))
{
    kit_open_two("[slice]\n", "[slice]\n");
    *most = 0;
    if (rival) {
        kit_start(rival);
        live_await(&kit_live, "b", "members", 1);
    }
    kit_run(program);
    kit_kill_all();
    kit_close();
    g_test_message("%.1f ms waited", (double)*most / MS);
    return *most;
}

static uint64_t run(void (*program)(void))
{
    return run_beside(program, NULL);
}

/*
 * 32 ms, and what is launched between two markers: 5 ms. Before anything is known, 8 launches of
 * each stream, and the 24 of three markers.
 */
static void test_bound(void)
{
    g_assert_cmpuint(run_beside(flood_long, rests), <, (24 + 8) * 2 * MS + 5 * MS);
    g_assert_cmpuint(run_beside(flood_short, rests), <, (32 + 5) * MS);
    g_assert_cmpuint(run_beside(flood_streams, rests), <, (24 + 5 * 8) * MS + 20 * MS);
    g_assert_cmpuint(run(flood_outside), >, 500 * MS);
}

/* Nobody has a process there whom it could hold up. */
static void test_alone(void)
{
    uint64_t waited = run(flood_long);

    g_assert_cmpuint(waited, >, 100 * MS);
    g_assert_cmpuint(waited, <, (200 + 34) * MS);
}

/* Short launches have a marker now and then, each 192 to 256. */
static void marks(void)
{
    unsigned int before;

    kit_enter("a");
    for (unsigned int i = 0; i < 200; i++)
        kit_launch(kit_kernel(1000), NULL);
    before = kit_calls("cuEventRecord");
    for (unsigned int i = 0; i < 6400; i++)
        kit_launch(kit_kernel(1000), NULL);
    g_assert_cmpuint(kit_calls("cuEventRecord") - before, >=, 25);
    /* More when this program gets no processor for a while, which counts as the card's time. */
    g_assert_cmpuint(kit_calls("cuEventRecord") - before, <=, 800);
}

static void test_marks(void)
{
    run(marks);
}

/* A marker would be part of the graph. */
static void captures(void)
{
    CUstream stream = (CUstream)(uintptr_t)0x110;
    CUgraph graph = NULL;

    kit_enter("a");
    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (unsigned int i = 0; i < 200; i++)
        kit_launch(kit_kernel(MS), stream);
    g_assert_cmpuint(kit_calls("cuEventRecord"), ==, 0);
    ok(cuStreamEndCapture(stream, &graph));
}

static void test_captures(void)
{
    run(captures);
}

/* All waits for what the same thread launches next: it is not held up for long. */
static void waits_for_itself(void)
{
    CUstream waiting_one = (CUstream)(uintptr_t)0x110, other = (CUstream)(uintptr_t)0x220;

    kit_enter("a");
    for (unsigned int i = 0; i < 30; i++)
        kit_launch(FAKE_SPIN, waiting_one);
    kit_launch(FAKE_RELEASE, other);
    ok(cuStreamSynchronize(waiting_one));
}

static void test_waits_for_itself(void)
{
    run(waits_for_itself);
}

/* A stream that waits for long holds up the others once, or until its markers are all there are. */
static void waits_beside(void)
{
    CUstream waiting_one = (CUstream)(uintptr_t)0x110, other = (CUstream)(uintptr_t)0x220;
    gint64 from;

    kit_enter("a");
    ok(cuStreamWaitValue32_v2(waiting_one, 0, 1, 0));
    for (unsigned int i = 0; i < 200; i++)
        kit_launch(kit_kernel(MS), waiting_one);
    from = g_get_monotonic_time();
    for (unsigned int i = 0; i < 2000; i++)
        kit_launch(kit_kernel(1000), other);
    ok(cuStreamSynchronize(other));
    /* 250 markers, of which each would wait 0.1 s. */
    g_assert_cmpint(g_get_monotonic_time() - from, <, 5 * G_USEC_PER_SEC);
}

static void test_waits_beside(void)
{
    run(waits_beside);
}

/* Its events end with its context. */
static void context_ends(void)
{
    kit_enter("a");
    for (unsigned int i = 0; i < 5; i++) {
        CUcontext context = NULL;

        ok(cuCtxCreate_v2(&context, 0, 0));
        for (unsigned int k = 0; k < 50; k++)
            kit_launch(kit_kernel(100000), NULL);
        ok(cuCtxDestroy_v2(context));
    }
}

static void test_context_ends(void)
{
    run(context_ends);
}

/*
 * 28 ms of work that wait, and then the slice is measured: it gets a hard cap. The arbiter takes
 * the time until then for work that is done; @most has how long that was at most.
 */
static void is_measured(void)
{
    CUstream waiting_one = NULL;
    unsigned int before, ns = 20000;
    gint64 from;

    kit_enter("a");
    /* The default stream does not wait for it. */
    ok(cuStreamCreate(&waiting_one, 1));
    for (unsigned int i = 0; i < 100; i++)
        kit_launch(kit_kernel(MS), NULL);
    ok(cuStreamSynchronize(NULL));
    ok(cuStreamWaitValue32_v2(waiting_one, 0, 1, 0));
    from = g_get_monotonic_time();
    for (unsigned int i = 0; i < 28; i++)
        kit_launch(kit_kernel(MS), waiting_one);
    g_assert_cmpint(live_status(&kit_live, "a", "gpu_ns"), ==, 0);
    live_configure(&kit_live, "a", "[slice]\ncap=50\nhard=true\n");
    /* As kit_enter_measured() does. */
    do {
        before = kit_calls("cuEventRecord");
        kit_launch(kit_kernel(ns++), NULL);
        ok(cuStreamSynchronize(NULL));
    } while (kit_calls("cuEventRecord") < before + 2);
    *most = (uint64_t)(g_get_monotonic_time() - from) * 1000;
    g_usleep(20000);
}

/* What it had submitted while it was alone is charged. */
static void test_charged(void)
{
    gint64 charged;

    kit_open_two("[slice]\n", "[slice]\n");
    kit_run(is_measured);
    charged = live_status(&kit_live, "a", "gpu_ns");
    g_test_message("charged %.1f ms after %.1f ms", (double)charged / MS, (double)*most / MS);
    g_assert_cmpint(charged + (gint64)*most, >, 27 * MS);
    g_assert_cmpint(charged, <, 100 * MS);
    kit_close();
}

/* The rival only computes, so the other's copies are free while its kernels are measured. */
static void computes(void)
{
    kit_enter("b");
    for (;;) {
        kit_launch(kit_kernel(500000), NULL);
        ok(cuStreamSynchronize(NULL));
    }
}

#define ROUNDS 50
#define COPIES 24

/* 50 kernels of 50 us, each beside 24 copies of 0.1 ms that wait. */
static void copies_wait(void)
{
    CUstream copying = (CUstream)(uintptr_t)0x110, computing = (CUstream)(uintptr_t)0x220;

    kit_enter("a");
    for (unsigned int round = 0; round < ROUNDS; round++) {
        for (unsigned int i = 0; i < COPIES; i++)
            ok(cuMemcpyHtoDAsync_v2(0, NULL, 100000 * FAKE_COPIES, copying));
        kit_launch(kit_kernel(50000), computing);
        ok(cuStreamSynchronize(computing));
    }
    g_usleep(20000);
}

/* What waits of one class is not charged to another. */
static void test_classes_apart(void)
{
    gint64 charged;

    kit_open_two("[slice]\n", "[slice]\n");
    kit_start(computes);
    live_await(&kit_live, "b", "members", 1);
    kit_run(copies_wait);
    charged = live_status(&kit_live, "a", "gpu_ns");
    g_test_message("charged %.1f ms", (double)charged / MS);
    g_assert_cmpint(charged, >, 1 * MS);
    g_assert_cmpint(charged, <, 12 * MS);
    kit_kill_all();
    kit_close();
}

/*
 * The program rests behind its first marker. That is no time of the card's, so few of the launches
 * that follow have a marker.
 */
static void rests_at_first(void)
{
    unsigned int before;

    kit_enter("a");
    for (unsigned int i = 0; i < 6; i++)
        kit_launch(kit_kernel(10000), NULL);
    g_assert_cmpuint(kit_calls("cuEventRecord"), ==, 1);
    g_usleep(1000000);
    before = kit_calls("cuEventRecord");
    for (unsigned int i = 0; i < 60; i++)
        kit_launch(kit_kernel(10000), NULL);
    g_test_message("%u markers", kit_calls("cuEventRecord") - before);
    g_assert_cmpuint(kit_calls("cuEventRecord") - before, <, 20);
}

static void test_rests_at_first(void)
{
    run(rests_at_first);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    most = mmap(NULL, sizeof(*most), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_test_add_func("/backlog/bound", test_bound);
    g_test_add_func("/backlog/alone", test_alone);
    g_test_add_func("/backlog/marks", test_marks);
    g_test_add_func("/backlog/captures", test_captures);
    g_test_add_func("/backlog/waits-for-itself", test_waits_for_itself);
    g_test_add_func("/backlog/waits-beside", test_waits_beside);
    g_test_add_func("/backlog/context-ends", test_context_ends);
    g_test_add_func("/backlog/charged", test_charged);
    g_test_add_func("/backlog/classes-apart", test_classes_apart);
    g_test_add_func("/backlog/rests-at-first", test_rests_at_first);
    return g_test_run();
}
