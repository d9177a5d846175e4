// SPDX-License-Identifier: MIT
/* What a callback waits for another thread has posted; who learns of it by the callback sees it. */
#include "client.h"

#include <pthread.h>
#include <sched.h>

#define ROUNDS 100
#define BEFORE 100 /* calls, of which the last one counts */

static _Atomic unsigned int begun, posted, called;
static CUdeviceptr word;

static void *post_words(void *context)
{
    ok(cuCtxSetCurrent(context));
    for (unsigned int round = 1; round <= ROUNDS; round++) {
        while (begun < round)
            sched_yield();
        for (unsigned int i = BEFORE; i-- > 0;)
            ok(cuMemsetD32Async(word + 4 * i, round, 1, NULL));
        posted = round;
    }
    return NULL;
}

static void await_posted(void *data)
{
    unsigned int round = *(unsigned int *)data;

    while (posted < round)
        sched_yield();
    called = round;
}

void check_callback_order(void)
{
    CUcontext context = begin_context();
    unsigned int round = 1;
    pthread_t thread;
    CUstream stream;

    word = allocate_device(4096);
    ok(cuStreamCreate(&stream, 1)); /* it does not wait for the default one */
    must(pthread_create(&thread, NULL, post_words, context) == 0);
    for (; round <= ROUNDS; round++) {
        ok(cuLaunchHostFunc(stream, await_posted, &round));
        begun = round;
        while (called < round)
            sched_yield();
        must(read_word(word) == round);
        ok(cuStreamSynchronize(stream));
    }
    pthread_join(thread, NULL);
}
