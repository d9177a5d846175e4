// SPDX-License-Identifier: MIT
/*
 * Work that waits for other work which waits for its turn: a kernel that spins until another one
 * runs, in the same process or in another of the slice, while a rival keeps the card busy; the same
 * if that one comes when the slice has used up its lease, or its cap, by spinning; and a thread
 * that the driver holds up.
 */
#include "fake.h"
#include "kit.h"

#include <sys/mman.h>
#include <unistd.h>

#define MS 1000000u
/* A round may take this long on a busy machine; without an end it would take forever. */
#define LONGEST_US (20 * G_USEC_PER_SEC)

static const CUstream one = (CUstream)(uintptr_t)0x110, other = (CUstream)(uintptr_t)0x220;

static unsigned int rounds;
/* Between a kernel that spins and the one that it waits for. */
static gulong pause_us;
/* It has work before it in its own stream, which ends while it waits for its turn. */
static bool comes_later;
/* It never waits for what it has launched, so it always waits for a turn; or it launches nothing.
 */
static bool rival_always_waits, rival_rests;

/**
 * struct seen - by the test and its programs
 * @spun, @released: rounds so far
 * @longest_us: a round
 * @rival: its kernels that have ended
 */
static struct seen {
    _Atomic unsigned int spun;
    _Atomic unsigned int released;
    _Atomic gint64 longest_us;
    _Atomic unsigned int rival;
} *seen;

static void rival(void)
{
    while (rival_rests) {
        seen->rival++;
        g_usleep(1000);
    }
    kit_enter("b");
    for (;;) {
        kit_launch(kit_kernel(MS), NULL);
        kit_launch(kit_kernel(MS), NULL);
        if (!rival_always_waits)
            ok(cuStreamSynchronize(NULL));
        seen->rival++;
    }
}

static void await(_Atomic unsigned int *so_far, unsigned int round)
{
    while (*so_far < round)
        g_usleep(200);
}

static void note(gint64 from)
{
    gint64 took = g_get_monotonic_time() - from;

    seen->longest_us = MAX(seen->longest_us, took);
}

/* The driver's queue of each is deep enough, so without the door no round would wait. */
static void spins_for_itself(void)
{
    kit_enter_measured("a");
    for (unsigned int i = 0; i < rounds; i++) {
        gint64 from = g_get_monotonic_time();

        kit_launch(kit_kernel(MS), one);
        kit_launch(FAKE_SPIN, one);
        if (comes_later)
            kit_launch(kit_kernel(MS), other);
        g_usleep(pause_us);
        kit_launch(FAKE_RELEASE, other);
        ok(cuStreamSynchronize(one));
        note(from);
    }
}

static void spins(void)
{
    kit_enter_measured("a");
    for (unsigned int i = 0; i < rounds; i++) {
        gint64 from = g_get_monotonic_time();

        kit_launch(FAKE_SPIN, one);
        seen->spun++;
        ok(cuStreamSynchronize(one));
        note(from);
        await(&seen->released, i + 1);
    }
}

static void releases(void)
{
    kit_enter_measured("a");
    for (unsigned int i = 0; i < rounds; i++) {
        await(&seen->spun, i + 1);
        kit_launch(kit_kernel(MS), one);
        kit_launch(FAKE_RELEASE, one);
        ok(cuStreamSynchronize(one));
        seen->released++;
    }
}

static void run(unsigned int times, const char *a, void (*first)(void), void (*second)(void))
{
    unsigned int number;

    rounds = times;
    *seen = (struct seen){0};
    kit_open_two(a, "[slice]\n");
    kit_start(rival);
    await(&seen->rival, 5);
    number = kit_start(first);
    if (second)
        kit_await(kit_start(second));
    kit_await(number);
    g_test_message("%u rounds, of %.1f ms at most; the rival did %u", rounds,
                   (double)seen->longest_us / 1000, seen->rival);
    g_assert_cmpint(seen->longest_us, <, LONGEST_US);
    /* It had its turns meanwhile. */
    g_assert_cmpuint(seen->rival, >, 5);
    kit_kill_all();
    kit_close();
}

static void test_itself(void)
{
    run(10, "[slice]\n", spins_for_itself, NULL);
}

/* The arbiter has a lease for each process so far, so this takes longer. */
static void test_of_a_slice(void)
{
    run(3, "[slice]\n", spins, releases);
}

static void test_capped(void)
{
    run(10, "[slice]\ncap=30\nhard=true\n", spins_for_itself, NULL);
}

static void test_was_behind(void)
{
    comes_later = true;
    run(10, "[slice]\ncap=30\nhard=true\n", spins_for_itself, NULL);
    comes_later = false;
}

/* Longer than a lease, and than the arbiter waits for the end of work. */
static void test_late(const void *slice)
{
    /* Without a cap it would not be measured while the rival rests. */
    unsigned int rivals = strstr(slice, "cap") ? 3 : 2;

    pause_us = 60 * 1000;
    for (unsigned int i = 0; i < rivals; i++) {
        rival_always_waits = i == 1;
        rival_rests = i == 2;
        run(5, slice, spins_for_itself, NULL);
    }
    rival_rests = false;
    pause_us = 0;
}

static _Atomic bool is_held, has_launched;

/* As the driver does while the stream's queue is full. */
static void hold(CUstream stream)
{
    if (stream != one)
        return;
    is_held = true;
    while (!has_launched)
        g_usleep(100);
}

static void *launch_one(void *context)
{
    ok(cuCtxSetCurrent(context));
    kit_launch(kit_kernel(MS), one);
    return NULL;
}

/* A thread waits in the driver for what another one launches. */
static void held(void)
{
    void (**before)(CUstream) = NULL;
    CUcontext context;
    GThread *thread;

    kit_enter_measured("a");
    before = kit_driver("fake_before_record");
    *before = hold;
    ok(cuCtxGetCurrent(&context));
    thread = g_thread_new("held", launch_one, context);
    while (!is_held)
        g_usleep(100);
    kit_launch(kit_kernel(2 * MS), other);
    ok(cuStreamSynchronize(other));
    has_launched = true;
    g_thread_join(thread);
}

static void test_held(void)
{
    kit_open_two("[slice]\ncap=50\nhard=true\n", "[slice]\n");
    kit_run(held);
    kit_close();
}

static void hold_pooled(CUstream stream, bool is_done_there)
{
    if (!is_done_there)
        hold(stream);
}

static void *allocate_one(void *context)
{
    CUdeviceptr dptr;

    ok(cuCtxSetCurrent(context));
    ok(cuMemAllocAsync(&dptr, 10 * MIB, one));
    return NULL;
}

/* What the other one launches needs memory of the same pool. */
static void held_in_a_pool(void)
{
    void (**around)(CUstream, bool) = NULL;
    CUcontext context;
    GThread *thread;
    CUdeviceptr dptr;

    alarm(LONGEST_US / G_USEC_PER_SEC);
    kit_enter("a");
    around = kit_driver("fake_around_pooled");
    *around = hold_pooled;
    ok(cuCtxGetCurrent(&context));
    thread = g_thread_new("held", allocate_one, context);
    while (!is_held)
        g_usleep(100);
    ok(cuMemAllocAsync(&dptr, 10 * MIB, other));
    kit_launch(kit_kernel(MS), other);
    ok(cuMemFreeAsync(dptr, other));
    has_launched = true;
    g_thread_join(thread);
}

static void test_held_in_a_pool(void)
{
    kit_open_two("[slice]\n", "[slice]\n");
    kit_run(held_in_a_pool);
    kit_close();
}

static void *map_one(void *context)
{
    CUarrayMapInfo none = {.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP};

    ok(cuCtxSetCurrent(context));
    ok(cuMemMapArrayAsync(&none, 1, one));
    return NULL;
}

/* What the other one launches needs memory that it maps. */
static void held_in_a_map(void)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;
    void (**before)(CUstream) = NULL;
    CUcontext context;
    GThread *thread;

    alarm(LONGEST_US / G_USEC_PER_SEC);
    kit_enter("a");
    before = kit_driver("fake_before_map");
    *before = hold;
    ok(cuCtxGetCurrent(&context));
    thread = g_thread_new("held", map_one, context);
    while (!is_held)
        g_usleep(100);
    ok(cuMemCreate(&handle, 10 * MIB, &property, 0));
    kit_launch(kit_kernel(MS), other);
    ok(cuMemRelease(handle));
    has_launched = true;
    g_thread_join(thread);
}

static void test_held_in_a_map(void)
{
    kit_open_two("[slice]\n", "[slice]\n");
    kit_run(held_in_a_map);
    kit_close();
}

static GThread *looking;

/* As the driver does, too: it lets no thread ask for an event while another's launch waits. */
static void hold_query(void)
{
    if (g_thread_self() != looking)
        return;
    is_held = true;
    while (!has_launched)
        g_usleep(100);
}

static void *look(void *context)
{
    ok(cuCtxSetCurrent(context));
    looking = g_thread_self();
    while (!has_launched)
        kit_launch(kit_kernel(1000), one);
    return NULL;
}

/* A thread looks how far the GPU is when the slice becomes measured, and another one launches. */
static void held_in_a_look(void)
{
    unsigned int before, ns = 20000;
    void (**query)(void) = NULL;
    CUcontext context;
    GThread *thread;

    alarm(LONGEST_US / G_USEC_PER_SEC);
    kit_enter("a");
    query = kit_driver("fake_before_query");
    *query = hold_query;
    ok(cuCtxGetCurrent(&context));
    thread = g_thread_new("looks", look, context);
    while (!is_held)
        g_usleep(100);
    live_configure(&kit_live, "a", "[slice]\ncap=50\nhard=true\n");
    /* As kit_enter_measured() does. */
    do {
        before = kit_calls("cuEventRecord");
        kit_launch(kit_kernel(ns++), other);
    } while (kit_calls("cuEventRecord") < before + 2);
    has_launched = true;
    g_thread_join(thread);
}

static void test_held_in_a_look(void)
{
    kit_open_two("[slice]\n", "[slice]\n");
    kit_run(held_in_a_look);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_test_add_func("/deadlocks/held", test_held);
    g_test_add_func("/deadlocks/held-in-a-pool", test_held_in_a_pool);
    g_test_add_func("/deadlocks/held-in-a-map", test_held_in_a_map);
    g_test_add_func("/deadlocks/held-in-a-look", test_held_in_a_look);
    g_test_add_func("/deadlocks/itself", test_itself);
    g_test_add_func("/deadlocks/of-a-slice", test_of_a_slice);
    g_test_add_func("/deadlocks/capped", test_capped);
    g_test_add_func("/deadlocks/was-behind", test_was_behind);
    g_test_add_data_func("/deadlocks/late", "[slice]\n", test_late);
    g_test_add_data_func("/deadlocks/late-capped", "[slice]\ncap=30\nhard=true\n", test_late);
    return g_test_run();
}
