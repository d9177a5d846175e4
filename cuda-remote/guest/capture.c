// SPDX-License-Identifier: MIT
/*
 * Whether work that is put into a stream becomes a graph's: programs ask it all the time, and while
 * no capture is under way there is one answer.
 */
#include "capture.h"

#include "remote.h"

#include <stdatomic.h>

/* Of the program. One that ends with an error counts as under way from then on: then the worker is
 * asked. */
static _Atomic uint64_t begun, ended;

bool capture_is_none(uint64_t *count)
{
    *count = atomic_load(&begun);
    return atomic_load(&ended) == *count;
}

/* It counts before it can be seen. */
static CUresult begin_capture(unsigned int number, const uint64_t *words)
{
    CUresult result;

    atomic_fetch_add(&begun, 1);
    result = (CUresult)remote_call(number, words);
    if (result != CUDA_SUCCESS)
        atomic_fetch_add(&ended, 1);
    return result;
}

#define BEGIN(name)                                                                                \
    EXPORT CUresult name(CUstream stream);                                                         \
    CUresult name(CUstream stream)                                                                 \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)stream};                           \
                                                                                                   \
        return begin_capture(CALL_##name, words);                                                  \
    }
BEGIN(cuStreamBeginCapture)
BEGIN(cuStreamBeginCapture_ptsz)

#define BEGIN_IN_MODE(name)                                                                        \
    EXPORT CUresult name(CUstream stream, unsigned int mode);                                      \
    CUresult name(CUstream stream, unsigned int mode)                                              \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)stream, mode};                     \
                                                                                                   \
        return begin_capture(CALL_##name, words);                                                  \
    }
BEGIN_IN_MODE(cuStreamBeginCapture_v2)
BEGIN_IN_MODE(cuStreamBeginCapture_v2_ptsz)

#define BEGIN_TO_GRAPH(name)                                                                       \
    EXPORT CUresult name(CUstream stream, CUgraph graph, const CUgraphNode *after,                 \
                         const void *edges, size_t count, unsigned int mode);                      \
    CUresult name(CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges,     \
                  size_t count, unsigned int mode)                                                 \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {                                              \
            (uintptr_t)stream, (uintptr_t)graph, (uintptr_t)after, (uintptr_t)edges, count, mode}; \
                                                                                                   \
        return begin_capture(CALL_##name, words);                                                  \
    }
BEGIN_TO_GRAPH(cuStreamBeginCaptureToGraph)
BEGIN_TO_GRAPH(cuStreamBeginCaptureToGraph_ptsz)

#define END(name)                                                                                  \
    EXPORT CUresult name(CUstream stream, CUgraph *graph);                                         \
    CUresult name(CUstream stream, CUgraph *graph)                                                 \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)stream, (uintptr_t)graph};         \
        CUresult result = (CUresult)remote_call(CALL_##name, words);                               \
                                                                                                   \
        if (result == CUDA_SUCCESS)                                                                \
            atomic_fetch_add(&ended, 1);                                                           \
        return result;                                                                             \
    }
END(cuStreamEndCapture)
END(cuStreamEndCapture_ptsz)

/* What is kept is of a time without a capture, or of a capture that has begun meanwhile, which is
 * one more. */
static CUresult ask_capturing(unsigned int number, CUstream stream, unsigned int *status)
{
    const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)stream, (uintptr_t)status};

    uint64_t count;

    return (CUresult)(capture_is_none(&count) ? remote_keep_since(number, words, count)
                                              : remote_call(number, words));
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, unsigned int *status);
CUresult cuStreamIsCapturing(CUstream stream, unsigned int *status)
{
    return ask_capturing(CALL_cuStreamIsCapturing, stream, status);
}

EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, unsigned int *status);
CUresult cuStreamIsCapturing_ptsz(CUstream stream, unsigned int *status)
{
    return ask_capturing(CALL_cuStreamIsCapturing_ptsz, stream, status);
}
