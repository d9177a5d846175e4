// SPDX-License-Identifier: MIT
/*
 * Time on the card, which does one thing after the other, whosever it is. A function is a number:
 * how many nanoseconds a launch of it takes. Streams are in order; events have the card's time.
 */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "card.h"

#define STREAMS 64
#define EVENTS  4096
/* What is longer is an address that a test made up. */
#define MOST_NS 1000000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* When the last work of each ends; by the stream's address. */
static uint64_t streams[STREAMS];
/* @ended: with its context; whoever uses it then may crash the driver. */
static struct event {
    bool used;
    bool ended;
    CUcontext context;
    uint64_t at;
} events[EVENTS];

static uint64_t *stream_of(CUstream stream)
{
    return &streams[((uintptr_t)stream >> 4 ^ (uintptr_t)stream) % STREAMS];
}

/* NULL: it is none. */
static struct event *event_of(CUevent event)
{
    uintptr_t number = (uintptr_t)event;

    if (!number || number > EVENTS || !events[number - 1].used)
        return NULL;
    if (events[number - 1].ended)
        abort();
    return &events[number - 1];
}

void fake_end_events(CUcontext context)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < EVENTS; i++)
        events[i].ended |= events[i].used && events[i].context == context;
    pthread_mutex_unlock(&lock);
}

static CUresult launch(CUfunction f, CUstream stream)
{
    uint64_t ns = (uintptr_t)f < MOST_NS ? (uintptr_t)f : 0;

    pthread_mutex_lock(&lock);
    if (*stream_of(stream) < FAKE_NEVER)
        *stream_of(stream) = card_run(*stream_of(stream), ns);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static void sleep_until(uint64_t at)
{
    struct timespec until = {.tv_sec = (time_t)(at / 1000000000u),
                             .tv_nsec = (long)(at % 1000000000u)};

    while (at > card_now() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
        ;
}

static CUresult synchronize(CUstream stream)
{
    uint64_t at;

    pthread_mutex_lock(&lock);
    at = *stream_of(stream);
    pthread_mutex_unlock(&lock);
    sleep_until(at);
    return CUDA_SUCCESS;
}

#define LAUNCH_KERNEL(name)                                                                        \
    CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,                 \
                  unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,          \
                  CUstream stream, void **parameters, void **extra)                                \
    {                                                                                              \
        const long given[FAKE_ARGUMENTS] = {                                                       \
            (long)f, gx, gy, gz, bx, by, bz, shared, (long)stream, (long)parameters, (long)extra}; \
                                                                                                   \
        ENTER();                                                                                   \
        memcpy(fake_arguments, given, sizeof(given));                                              \
        return launch(f, stream);                                                                  \
    }
LAUNCH_KERNEL(cuLaunchKernel)
LAUNCH_KERNEL(cuLaunchKernel_ptsz)

#define LAUNCH_EX(name)                                                                            \
    CUresult name(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra)     \
    {                                                                                              \
        ENTER();                                                                                   \
        (void)parameters;                                                                          \
        (void)extra;                                                                               \
        return launch(f, config->hStream);                                                         \
    }
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    ENTER();
    *status =
        stream == FAKE_CAPTURING ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr at, unsigned int value,
                                unsigned int flags)
{
    ENTER();
    (void)at;
    (void)value;
    (void)flags;
    pthread_mutex_lock(&lock);
    if (stream)
        *stream_of(stream) = FAKE_NEVER;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

#define SYNCHRONIZE(name)                                                                          \
    CUresult name(CUstream stream)                                                                 \
    {                                                                                              \
        ENTER();                                                                                   \
        return synchronize(stream);                                                                \
    }
SYNCHRONIZE(cuStreamSynchronize)
SYNCHRONIZE(cuStreamSynchronize_ptsz)

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    unsigned int i = 0;

    ENTER();
    (void)flags;
    pthread_mutex_lock(&lock);
    while (i < EVENTS && events[i].used)
        i++;
    if (i < EVENTS)
        events[i] = (struct event){.used = true, .context = fake_current()};
    pthread_mutex_unlock(&lock);
    *event = (CUevent)(uintptr_t)(i + 1);
    return i < EVENTS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult record(CUevent event, CUstream stream)
{
    struct event *found = event_of(event);

    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    found->at = *stream_of(stream) > card_now() ? *stream_of(stream) : card_now();
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    ENTER();
    return record(event, stream);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    ENTER();
    return record(event, stream);
}

CUresult cuEventQuery(CUevent event)
{
    struct event *found = event_of(event);

    ENTER();
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    return card_now() >= found->at ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end)
{
    struct event *first = event_of(begin), *last = event_of(end);

    ENTER();
    if (!first || !last)
        return CUDA_ERROR_INVALID_HANDLE;
    *ms = (float)((double)((int64_t)(last->at - first->at)) / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    struct event *found = event_of(event);

    ENTER();
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    found->used = false;
    return CUDA_SUCCESS;
}
