// SPDX-License-Identifier: MIT
/* Memory of the GPU that the program allocates and frees: what is known of it is kept meanwhile. */
#include "capture.h"
#include "places.h"
#include "remote.h"

CUresult cuMemFreeHost(void *at);

/* A capture allocates an address, and its graph the memory, again and again. */
static CUresult allocate_memory(unsigned int number, const uint64_t *words, uint64_t bytes)
{
    CUresult result = (CUresult)remote_call(number, words);
    uint64_t captures;

    if (result == CUDA_SUCCESS && capture_is_none(&captures))
        place_add(*(const CUdeviceptr *)(uintptr_t)words[0], bytes);
    return result;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *to, size_t bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *to, size_t bytes)
{
    const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)to, bytes};

    return allocate_memory(CALL_cuMemAlloc_v2, words, bytes);
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *to, size_t *pitch, size_t width, size_t height,
                                   unsigned int element);
CUresult cuMemAllocPitch_v2(CUdeviceptr *to, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
    const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)to, (uintptr_t)pitch, width, height,
                                                 element};
    CUresult result = (CUresult)remote_call(CALL_cuMemAllocPitch_v2, words);

    if (result == CUDA_SUCCESS)
        place_add(*to, *pitch * height);
    return result;
}

#define ALLOCATE_ASYNC(name)                                                                       \
    EXPORT CUresult name(CUdeviceptr *to, size_t bytes, CUstream stream);                          \
    CUresult name(CUdeviceptr *to, size_t bytes, CUstream stream)                                  \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)to, bytes, (uintptr_t)stream};     \
                                                                                                   \
        return allocate_memory(CALL_##name, words, bytes);                                         \
    }
ALLOCATE_ASYNC(cuMemAllocAsync)
ALLOCATE_ASYNC(cuMemAllocAsync_ptsz)

#define ALLOCATE_FROM_POOL(name)                                                                   \
    EXPORT CUresult name(CUdeviceptr *to, size_t bytes, void *pool, CUstream stream);              \
    CUresult name(CUdeviceptr *to, size_t bytes, void *pool, CUstream stream)                      \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)to, bytes, (uintptr_t)pool,        \
                                                     (uintptr_t)stream};                           \
                                                                                                   \
        return allocate_memory(CALL_##name, words, bytes);                                         \
    }
ALLOCATE_FROM_POOL(cuMemAllocFromPoolAsync)
ALLOCATE_FROM_POOL(cuMemAllocFromPoolAsync_ptsz)

/* What is managed is memory of both here. */
EXPORT CUresult cuMemFree_v2(CUdeviceptr at);
CUresult cuMemFree_v2(CUdeviceptr at)
{
    const uint64_t words[SIGNATURE_ARGUMENTS] = {at};

    if (shared_contains((const void *)(uintptr_t)at, 1))
        return cuMemFreeHost((void *)(uintptr_t)at);
    place_end(at);
    return (CUresult)remote_call(CALL_cuMemFree_v2, words);
}

#define FREE_ASYNC(name)                                                                           \
    EXPORT CUresult name(CUdeviceptr at, CUstream stream);                                         \
    CUresult name(CUdeviceptr at, CUstream stream)                                                 \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {at, (uintptr_t)stream};                       \
                                                                                                   \
        place_end(at);                                                                             \
        return (CUresult)remote_post(CALL_##name, words);                                          \
    }
FREE_ASYNC(cuMemFreeAsync)
FREE_ASYNC(cuMemFreeAsync_ptsz)
