// SPDX-License-Identifier: MIT
#include "drain.h"

#include "clock.h"
#include "forks.h"
#include "fronts.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

/* @busy: the thread has those contexts, and has not come back */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool started, busy;
static CUcontext asked[DRAIN_CONTEXTS];
static unsigned int asked_count;
static CUresult result;

static CUresult synchronise_contexts(const CUcontext *contexts, unsigned int count)
{
    CUresult synchronised = CUDA_SUCCESS;

    for (unsigned int i = 0; i < count && synchronised == CUDA_SUCCESS; i++) {
        synchronised = CARD(cuCtxSetCurrent, contexts[i]);
        if (synchronised == CUDA_SUCCESS)
            synchronised = CARD(cuCtxSynchronize);
    }
    CARD(cuCtxSetCurrent, NULL);
    return synchronised;
}

static void *drain_when_asked(void *data)
{
    (void)data;
    pthread_mutex_lock(&lock);
    for (;;) {
        CUcontext contexts[DRAIN_CONTEXTS];
        unsigned int count = asked_count;
        CUresult synchronised;

        if (!busy) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        memcpy(contexts, asked, sizeof(contexts));
        pthread_mutex_unlock(&lock);
        synchronised = synchronise_contexts(contexts, count);
        pthread_mutex_lock(&lock);
        result = synchronised;
        busy = false;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

/* Under the lock. */
static bool start_thread(void)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    pthread_t thread;

    if (started)
        return true;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, NULL, drain_when_asked, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

/* Under the lock. False: it has not come back until then. */
static bool await_thread(uint64_t until)
{
    const struct timespec at = {.tv_sec = (time_t)(until / NS_PER_S),
                                .tv_nsec = (long)(until % NS_PER_S)};

    while (busy && clock_now() < until)
        pthread_cond_timedwait(&changed, &lock, &at);
    return !busy;
}

enum drained drain(const CUcontext *contexts, unsigned int count, uint64_t limit_ns)
{
    uint64_t until = clock_now() + limit_ns;
    enum drained drained = DRAIN_FAILED;

    pthread_mutex_lock(&lock);
    if (count <= DRAIN_CONTEXTS && start_thread()) {
        drained = DRAIN_LATE;
        /* It may still wait for what it was asked for before. */
        if (await_thread(until)) {
            memcpy(asked, contexts, count * sizeof(*contexts));
            asked_count = count;
            busy = true;
            pthread_cond_broadcast(&changed);
            if (await_thread(until))
                drained = result == CUDA_SUCCESS ? DRAINED : DRAIN_FAILED;
        }
    }
    pthread_mutex_unlock(&lock);
    return drained;
}

void drain_settle(void)
{
    pthread_mutex_lock(&lock);
    while (busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void drain_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    started = busy = false;
}
