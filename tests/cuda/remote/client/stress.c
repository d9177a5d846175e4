// SPDX-License-Identifier: MIT
/*
 * Threads whose streams wait for each other's events in random order. Each counts in a word of its
 * own, by kernels that are posted; it says how far it is when it has recorded an event, and whoever
 * waits for that event then must not read less.
 */
#include "client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define THREADS 16u
#define EVENTS  4u
#define STEPS   300u

struct walker {
    CUstream stream;
    CUevent events[EVENTS];
    CUdeviceptr word, copy;
    CUfunction count;
    unsigned int counted, random;
    _Atomic unsigned int recorded[EVENTS]; /* what the word has when the event is done */
    pthread_t thread;
};

static struct walker walkers[THREADS];
static CUcontext context;

static unsigned int next_random(struct walker *walker)
{
    walker->random ^= walker->random << 13;
    walker->random ^= walker->random >> 17;
    walker->random ^= walker->random << 5;
    return walker->random;
}

static void count_up(struct walker *walker)
{
    void *parameters[] = {&walker->word};

    ok(cuLaunchKernel(walker->count, 1, 1, 1, 1, 1, 1, 0, walker->stream, parameters, NULL));
    walker->counted++;
}

static void record(struct walker *walker)
{
    unsigned int at = next_random(walker) % EVENTS;

    ok(cuEventRecord(walker->events[at], walker->stream));
    atomic_store(&walker->recorded[at], walker->counted);
}

/* By a copy on this stream, after it waits for an event of another one. */
static void follow(struct walker *walker)
{
    struct walker *other = &walkers[next_random(walker) % THREADS];
    unsigned int at = next_random(walker) % EVENTS;
    unsigned int least = atomic_load(&other->recorded[at]);

    ok(cuStreamWaitEvent(walker->stream, other->events[at], 0));
    ok(cuMemcpyDtoDAsync_v2(walker->copy, other->word, 4, walker->stream));
    ok(cuStreamSynchronize(walker->stream));
    must(read_word(walker->copy) >= least);
}

static void look_at_own(struct walker *walker)
{
    ok(cuStreamSynchronize(walker->stream));
    must(read_word(walker->word) == walker->counted);
}

static void *walk(void *data)
{
    struct walker *walker = data;

    ok(cuCtxSetCurrent(context));
    for (unsigned int i = 0; i < STEPS; i++) {
        unsigned int what = next_random(walker) % 8;

        if (what < 4)
            count_up(walker);
        else if (what < 6)
            record(walker);
        else if (what < 7)
            follow(walker);
        else
            look_at_own(walker);
    }
    look_at_own(walker);
    return NULL;
}

void check_random_threads(void)
{
    const char *seed = getenv("STRESS_SEED");
    CUmodule module;
    CUfunction count;

    context = begin_context();
    count = load_function(&module, "count");
    for (unsigned int i = 0; i < THREADS; i++) {
        struct walker *walker = &walkers[i];

        walker->random = (seed ? (unsigned int)atoi(seed) : 45) * 2654435761u + i * 40503u + 1;
        walker->count = count;
        walker->word = allocate_device(4096);
        walker->copy = allocate_device(4096);
        ok(cuMemsetD8_v2(walker->word, 0, 4096));
        ok(cuStreamCreate(&walker->stream, 1));
        for (unsigned int event = 0; event < EVENTS; event++)
            ok(cuEventCreate(&walker->events[event], 2));
    }
    for (unsigned int i = 0; i < THREADS; i++)
        must(!pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]));
    for (unsigned int i = 0; i < THREADS; i++)
        pthread_join(walkers[i].thread, NULL);
}
