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

void (*fake_before_record)(CUstream stream);
void (*fake_before_query)(void);
uint64_t fake_varying_ns;

/*
 * A point of a stream: when the card comes to it.
 * @spins_from: not 0: it comes when what spins from then on has been released
 */
struct point {
    uint64_t at;
    uint64_t spins_from;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Where the last work of each ends; by the stream's address. */
static struct point streams[STREAMS];
/* The thread's own default stream. */
static _Thread_local struct point own;
/* @ended: with its context; whoever uses it then may crash the driver. */
static struct event {
    bool used;
    bool ended;
    CUcontext context;
    struct point point;
} events[EVENTS];

/* @per_thread: by a function for which stream 0 is the thread's own. */
static struct point *stream_of(CUstream stream, bool per_thread)
{
    if (stream == CU_STREAM_PER_THREAD || (per_thread && !stream))
        return &own;
    return &streams[((uintptr_t)stream >> 4 ^ (uintptr_t)stream) % STREAMS];
}

/* Under the lock. */
static uint64_t time_of(struct point *point)
{
    uint64_t released_at = point->spins_from ? card_released() : 0;

    if (!point->spins_from)
        return point->at;
    if (released_at < point->spins_from)
        return FAKE_NEVER;
    *point = (struct point){.at = released_at};
    return released_at;
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

static CUresult run(struct point *point, enum card_engine engine, uint64_t ns)
{
    uint64_t after;

    pthread_mutex_lock(&lock);
    after = time_of(point);
    if (after < FAKE_NEVER)
        point->at = card_run(engine, after, ns);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult spin(struct point *point)
{
    uint64_t after;

    pthread_mutex_lock(&lock);
    after = time_of(point);
    if (after < FAKE_NEVER)
        point->spins_from = card_run(CARD_COMPUTE, after, 0);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, struct point *point)
{
    if (f == FAKE_SPIN)
        return spin(point);
    if (f == FAKE_VARIES)
        return run(point, CARD_COMPUTE, fake_varying_ns);
    if (f == FAKE_RELEASE)
        card_release(card_run(CARD_COMPUTE, 0, 1000));
    return run(point, CARD_COMPUTE, (uintptr_t)f < MOST_NS ? (uintptr_t)f : 0);
}

static void sleep_until(uint64_t at)
{
    struct timespec until = {.tv_sec = (time_t)(at / 1000000000u),
                             .tv_nsec = (long)(at % 1000000000u)};

    while (at > card_now() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
        ;
}

static CUresult synchronize(struct point *point)
{
    uint64_t at;

    do {
        pthread_mutex_lock(&lock);
        at = time_of(point);
        pthread_mutex_unlock(&lock);
        /* It may be released meanwhile. */
        sleep_until(at < FAKE_NEVER ? at : card_now() + 100000);
    } while (at >= FAKE_NEVER);
    return CUDA_SUCCESS;
}

#define LAUNCH_KERNEL(name, per_thread)                                                            \
    CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,                 \
                  unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,          \
                  CUstream stream, void **parameters, void **extra)                                \
    {                                                                                              \
        const long given[FAKE_ARGUMENTS] = {                                                       \
            (long)f, gx, gy, gz, bx, by, bz, shared, (long)stream, (long)parameters, (long)extra}; \
                                                                                                   \
        ENTER();                                                                                   \
        memcpy(fake_arguments, given, sizeof(given));                                              \
        return launch(f, stream_of(stream, per_thread));                                           \
    }
LAUNCH_KERNEL(cuLaunchKernel, false)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)

#define LAUNCH_EX(name, per_thread)                                                                \
    CUresult name(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra)     \
    {                                                                                              \
        ENTER();                                                                                   \
        (void)parameters;                                                                          \
        (void)extra;                                                                               \
        return launch(f, stream_of(config->hStream, per_thread));                                  \
    }
LAUNCH_EX(cuLaunchKernelEx, false)
LAUNCH_EX(cuLaunchKernelEx_ptsz, true)

static CUstreamCaptureStatus capture_of(CUstream stream)
{
    return stream == FAKE_CAPTURING ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                    : CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    ENTER();
    *status = capture_of(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status)
{
    ENTER();
    *status = capture_of(stream);
    return CUDA_SUCCESS;
}

/* The thread's, which it is given back. */
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static _Thread_local CUstreamCaptureMode current;
    CUstreamCaptureMode before = current;

    ENTER();
    current = *mode;
    *mode = before;
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
        *stream_of(stream, false) = (struct point){.at = FAKE_NEVER};
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

#define SYNCHRONIZE(name, per_thread)                                                              \
    CUresult name(CUstream stream)                                                                 \
    {                                                                                              \
        ENTER();                                                                                   \
        return synchronize(stream_of(stream, per_thread));                                         \
    }
SYNCHRONIZE(cuStreamSynchronize, false)
SYNCHRONIZE(cuStreamSynchronize_ptsz, true)

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

static CUresult record(CUevent event, CUstream stream, bool per_thread)
{
    struct event *found = event_of(event);

    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (fake_before_record)
        fake_before_record(stream);
    pthread_mutex_lock(&lock);
    found->point = *stream_of(stream, per_thread);
    if (time_of(&found->point) < card_now())
        found->point.at = card_now();
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    ENTER();
    return record(event, stream, false);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    ENTER();
    return record(event, stream, true);
}

CUresult cuEventQuery(CUevent event)
{
    struct event *found = event_of(event);
    uint64_t at;

    ENTER();
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (fake_before_query)
        fake_before_query();
    pthread_mutex_lock(&lock);
    at = time_of(&found->point);
    pthread_mutex_unlock(&lock);
    return card_now() >= at ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end)
{
    struct event *first = event_of(begin), *last = event_of(end);
    int64_t ns;

    ENTER();
    if (!first || !last)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    ns = (int64_t)(time_of(&last->point) - time_of(&first->point));
    pthread_mutex_unlock(&lock);
    *ms = (float)((double)ns / 1e6);
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

/* Of copies, which wait for the card's other work, the host's memory is not touched. */
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER();
    (void)to;
    (void)from;
    return run(stream_of(stream, false), CARD_COPY, bytes / FAKE_COPIES);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    ENTER();
    (void)to;
    (void)from;
    run(stream_of(NULL, false), CARD_COPY, bytes / FAKE_COPIES);
    return synchronize(stream_of(NULL, false));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    ENTER();
    (void)to;
    (void)value;
    return run(stream_of(stream, false), CARD_COMPUTE, bytes / FAKE_FILLS);
}
