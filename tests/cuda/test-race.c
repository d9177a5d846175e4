// SPDX-License-Identifier: MIT
/*
 * Many processes race for the last memory of one slice. The card counts the most that was ever in
 * use, and that never exceeds the limit.
 */
#include "kit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 64
#define LIMIT     (100 * MIB)
#define ROUNDS    20
#define HELD      6

/* All begin when the last one has a context. */
static void begin_together(void)
{
    struct live_report *report = &kit_live.reports[0];

    report->ready++;
    while (report->ready < PROCESSES)
        g_usleep(1000);
}

static CUresult from_pool(CUdeviceptr *dptr, size_t bytes)
{
    return cuMemAllocAsync(dptr, bytes, NULL);
}

static CUresult to_pool(CUdeviceptr dptr)
{
    CUmemoryPool pool;

    ok(cuDeviceGetDefaultMemPool(&pool, 0));
    if (dptr)
        ok(cuMemFreeAsync(dptr, NULL));
    return cuMemPoolTrimTo(pool, 0);
}

/* Other sizes in each process. */
static void take_and_give(CUresult (*allocate)(CUdeviceptr *dptr, size_t bytes),
                          CUresult (*give)(CUdeviceptr dptr))
{
    CUdeviceptr held[HELD] = {0};
    unsigned int seed = (unsigned int)getpid();

    kit_context();
    begin_together();
    for (unsigned int round = 0; round < ROUNDS * HELD; round++) {
        CUdeviceptr *at = &held[round % HELD];
        CUresult result;

        ok(give(*at));
        *at = 0;
        seed = seed * 1103515245u + 12345u;
        result = allocate(at, (seed >> 8) % (12 * MIB) + 1);
        g_assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
        if (result != CUDA_SUCCESS)
            *at = 0;
    }
    for (unsigned int i = 0; i < HELD; i++)
        ok(give(held[i]));
}

static void greedy(void)
{
    take_and_give(cuMemAlloc_v2, cuMemFree_v2);
}

static void greedy_of_pools(void)
{
    take_and_give(from_pool, to_pool);
}

static void measure(void)
{
    CUdeviceptr all;

    kit_context();
    g_assert_cmpuint(kit_peak(), <=, LIMIT);
    /* It was a race: nearly all of it was in use. */
    g_assert_cmpuint(kit_peak(), >, LIMIT * 9 / 10);
    kit_charged(0);
    ok(cuMemAlloc_v2(&all, LIMIT));
    ok(cuMemFree_v2(all));
}

static void race(void (*program)(void))
{
    kit_open(LIMIT);
    for (unsigned int i = 0; i < PROCESSES; i++)
        kit_start(program);
    for (unsigned int i = 0; i < PROCESSES; i++)
        kit_await(i);
    kit_run(measure);
    kit_close();
}

static void test_race(void)
{
    race(greedy);
}

static void test_pools(void)
{
    g_setenv("FAKE_CUDA_SMALL_STEPS", "1", TRUE);
    race(greedy_of_pools);
}

/* Without the door the same go beyond: the race is one. */
static void beyond(void)
{
    kit_context();
    g_assert_cmpuint(kit_peak(), >, LIMIT);
}

static void test_without(void)
{
    kit_open(0);
    for (unsigned int i = 0; i < PROCESSES; i++)
        kit_start(greedy);
    for (unsigned int i = 0; i < PROCESSES; i++)
        kit_await(i);
    kit_run(beyond);
    kit_close();
}

/* Killed in the middle of it, each gives back all that it had. */
static void killed(void)
{
    CUdeviceptr dptr;

    kit_context();
    for (unsigned int i = 0;; i++) {
        ok(cuMemAlloc_v2(&dptr, 1 * MIB));
        if (i == 7)
            kill(getpid(), SIGKILL);
    }
}

static void test_killed(void)
{
    kit_open(LIMIT);
    for (unsigned int i = 0; i < 12; i++) {
        pid_t pid = fork();

        if (!pid)
            killed();
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    }
    kit_charged(0);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/race/race", test_race);
    g_test_add_func("/race/pools", test_pools);
    g_test_add_func("/race/without", test_without);
    g_test_add_func("/race/killed", test_killed);
    return g_test_run();
}
