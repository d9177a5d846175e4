// SPDX-License-Identifier: MIT
#include "client.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 16
#define ROUNDS  100

static void *count_in_thread(void *data)
{
    CUcontext current;
    CUfunction count;
    CUstream stream;
    CUmodule module;
    CUdeviceptr at;
    void *parameters[] = {&at};

    /* A thread begins without a context. */
    ok(cuCtxGetCurrent(&current));
    must(!current);
    ok(cuCtxSetCurrent(data));
    count = load_function(&module, "count");
    ok(cuStreamCreate(&stream, 0));
    at = allocate_device(4096);
    ok(cuMemsetD8_v2(at, 0, 4096));
    for (unsigned int i = 0; i < ROUNDS; i++)
        ok(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    ok(cuStreamSynchronize(stream));
    must(read_word(at) == ROUNDS);
    ok(cuMemFree_v2(at));
    ok(cuModuleUnload(module));
    return NULL;
}

/* Twice, so that the second threads have channels that the first ones had. */
void check_threads(void)
{
    pthread_t running[THREADS];
    CUcontext context = begin_context();

    for (unsigned int round = 0; round < 2; round++) {
        for (unsigned int i = 0; i < THREADS; i++)
            must(!pthread_create(&running[i], NULL, count_in_thread, context));
        for (unsigned int i = 0; i < THREADS; i++)
            pthread_join(running[i], NULL);
    }
}

/* What one thread has posted comes before what another does, which knows of it. */
#define TURNS 300

static CUdeviceptr shared_word;
static _Atomic unsigned int written, checked;

static void *check_words(void *context)
{
    ok(cuCtxSetCurrent(context));
    for (unsigned int turn = 1; turn <= TURNS; turn++) {
        /* Calls all the time, also between a call of the other thread and its being in the ring. */
        while (written < turn)
            read_word(shared_word + 8192);
        must(read_word(shared_word) == turn);
        checked = turn;
    }
    return NULL;
}

void check_order_of_threads(void)
{
    CUcontext context = begin_context();
    CUstream stream;
    pthread_t other;

    ok(cuStreamCreate(&stream, 0));
    shared_word = allocate_device(MIB);
    must(!pthread_create(&other, NULL, check_words, context));
    for (unsigned int turn = 1; turn <= TURNS; turn++) {
        /* So that the last one is not yet carried out when the other thread hears of it; in every
         * second turn its channel sleeps. */
        for (unsigned int i = 0; i < turn % 2 * 4; i++)
            ok(cuMemsetD32Async(shared_word + 4096, i, 100000, stream));
        ok(cuMemsetD32Async(shared_word, turn, 1, stream));
        written = turn;
        while (checked < turn)
            sched_yield();
    }
    pthread_join(other, NULL);
}
