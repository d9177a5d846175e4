// SPDX-License-Identifier: MIT
/*
 * Capture, as a mode of a thread: what is launched on a stream becomes a part of a graph, and calls
 * that may wait for it are refused and end it, as its mode and the thread's say.
 */
#include "timing.h"

#include <string.h>

#define CAPTURES       16
#define STREAMS_OF_ONE 8

struct captured {
    uint64_t handle;
    uint64_t thread;
};

/* @thread: that began it. @streams: the first one, and those that have joined it by an event. */
struct capture {
    CUgraph graph;
    CUstreamCaptureMode mode;
    uint64_t thread;
    bool invalid;
    struct captured streams[STREAMS_OF_ONE];
    unsigned int count;
    CUgraphNode last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture captures[CAPTURES];
static _Atomic unsigned int active;
/* By the event: the capture in which it was recorded, plus one. */
static unsigned char recorded[TIMING_EVENTS];

static _Thread_local CUstreamCaptureMode mode_of_thread;

static uint64_t self(void)
{
    static _Thread_local char here;

    return (uintptr_t)&here;
}

/* Under the lock. NULL: it does not capture. */
static struct capture *find(CUstream stream, bool per_thread)
{
    struct captured key;

    key.handle = timing_key(stream, per_thread, &key.thread);
    for (unsigned int i = 0; i < CAPTURES; i++)
        for (unsigned int k = 0; captures[i].graph && k < captures[i].count; k++)
            if (captures[i].streams[k].handle == key.handle &&
                captures[i].streams[k].thread == key.thread)
                return &captures[i];
    return NULL;
}

static bool is_legacy(CUstream stream, bool per_thread)
{
    return stream == CU_STREAM_LEGACY || (!stream && !per_thread);
}

/* It would wait for what is captured. */
static CUresult take_legacy(bool invalidates)
{
    for (unsigned int i = 0; i < CAPTURES && invalidates; i++)
        captures[i].invalid = true;
    return FAKE_CAPTURE_IMPLICIT;
}

static CUresult capture_operation(struct capture *capture, const struct model_op *op)
{
    if (!op)
        capture->invalid = true;
    if (capture->invalid)
        return op ? FAKE_CAPTURE_INVALIDATED : FAKE_CAPTURE_UNSUPPORTED;
    if (op->kind == TIMING_EVENT)
        recorded[op->data[0]] = (unsigned char)(capture - captures + 1);
    graph_add(capture->graph, op);
    return CUDA_SUCCESS;
}

bool capture_takes(CUstream stream, bool per_thread, const struct model_op *op, CUresult *result)
{
    struct capture *capture;
    bool takes = true;

    if (!active)
        return false;
    pthread_mutex_lock(&lock);
    capture = find(stream, per_thread);
    if (capture)
        *result = capture_operation(capture, op);
    else if (is_legacy(stream, per_thread))
        *result = take_legacy(true);
    else
        takes = false;
    pthread_mutex_unlock(&lock);
    if (!takes && op && op->kind == TIMING_EVENT)
        capture_forget((unsigned int)op->data[0]);
    return takes;
}

void capture_forget(unsigned int event)
{
    recorded[event] = 0;
}

bool capture_waits(CUstream stream, bool per_thread, unsigned int event)
{
    struct capture *capture;
    bool waits;

    if (!active || event >= TIMING_EVENTS)
        return false;
    pthread_mutex_lock(&lock);
    waits = recorded[event] && captures[recorded[event] - 1].graph;
    capture = waits ? &captures[recorded[event] - 1] : NULL;
    if (waits && !find(stream, per_thread) && capture->count < STREAMS_OF_ONE) {
        struct captured *key = &capture->streams[capture->count++];

        key->handle = timing_key(stream, per_thread, &key->thread);
    }
    pthread_mutex_unlock(&lock);
    return waits;
}

CUresult capture_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;

    if (!active || mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < CAPTURES; i++) {
        struct capture *capture = &captures[i];
        bool is_own = capture->thread == self();

        if (!capture->graph || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        if (!is_own && (mode_of_thread != CU_STREAM_CAPTURE_MODE_GLOBAL ||
                        capture->mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
            continue;
        capture->invalid = true;
        result = FAKE_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult begin(CUstream stream, bool per_thread, CUstreamCaptureMode mode)
{
    CUresult result = FAKE_CAPTURE_UNSUPPORTED;
    unsigned int i = 0;

    if (is_legacy(stream, per_thread))
        return result;
    pthread_mutex_lock(&lock);
    while (i < CAPTURES && captures[i].graph)
        i++;
    if (i < CAPTURES && !find(stream, per_thread)) {
        captures[i] =
            (struct capture){.graph = graph_new(), .mode = mode, .thread = self(), .count = 1};
        captures[i].streams[0].handle =
            timing_key(stream, per_thread, &captures[i].streams[0].thread);
        active++;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult end(CUstream stream, bool per_thread, CUgraph *graph)
{
    struct capture *capture;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    pthread_mutex_lock(&lock);
    capture = find(stream, per_thread);
    if (capture) {
        result = capture->invalid ? FAKE_CAPTURE_INVALIDATED : CUDA_SUCCESS;
        *graph = capture->invalid ? NULL : capture->graph;
        memset(capture, 0, sizeof(*capture));
        active--;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult ask(CUstream stream, bool per_thread, CUstreamCaptureStatus *status)
{
    const struct capture *capture;
    CUresult result = CUDA_SUCCESS;

    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!active)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    capture = find(stream, per_thread);
    if (capture)
        *status =
            capture->invalid ? FAKE_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    else if (is_legacy(stream, per_thread))
        result = take_legacy(false);
    pthread_mutex_unlock(&lock);
    return result;
}

/* What comes next would be behind its last node. */
static CUresult tell(CUstream stream, bool per_thread, CUstreamCaptureStatus *status,
                     cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    CUresult result = ask(stream, per_thread, status);
    struct capture *capture;

    if (result != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return result;
    pthread_mutex_lock(&lock);
    capture = find(stream, per_thread);
    if (capture) {
        *id = 1;
        *graph = capture->graph;
        capture->last = graph_last(capture->graph);
        *nodes = &capture->last;
        *count = capture->last != NULL;
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

#define CAPTURE(suffix, per_thread)                                                                \
    CUresult cuStreamBeginCapture##suffix(CUstream stream)                                         \
    {                                                                                              \
        ENTER();                                                                                   \
        return begin(stream, per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL);                           \
    }                                                                                              \
    CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, CUstreamCaptureMode mode)            \
    {                                                                                              \
        ENTER();                                                                                   \
        return begin(stream, per_thread, mode);                                                    \
    }                                                                                              \
    CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph *graph)                           \
    {                                                                                              \
        ENTER();                                                                                   \
        return end(stream, per_thread, graph);                                                     \
    }                                                                                              \
    CUresult cuStreamIsCapturing##suffix(CUstream stream, CUstreamCaptureStatus *status)           \
    {                                                                                              \
        ENTER();                                                                                   \
        return ask(stream, per_thread, status);                                                    \
    }                                                                                              \
    CUresult cuStreamGetCaptureInfo##suffix(CUstream stream, CUstreamCaptureStatus *status,        \
                                            cuuint64_t *id)                                        \
    {                                                                                              \
        ENTER();                                                                                   \
        *id = 1;                                                                                   \
        return ask(stream, per_thread, status);                                                    \
    }                                                                                              \
    CUresult cuStreamGetCaptureInfo_v2##suffix(CUstream stream, CUstreamCaptureStatus *status,     \
                                               cuuint64_t *id, CUgraph *graph,                     \
                                               const CUgraphNode **nodes, size_t *count)           \
    {                                                                                              \
        ENTER();                                                                                   \
        return tell(stream, per_thread, status, id, graph, nodes, count);                          \
    }
CAPTURE(, false)
CAPTURE(_ptsz, true)

/* The thread's, which it is given back. */
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = mode_of_thread;

    ENTER();
    mode_of_thread = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
