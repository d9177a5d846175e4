// SPDX-License-Identifier: MIT
/* Copies of bytes in a row, between memory of the program and of the GPU, or any two addresses. */
#include "remote.h"

#include <string.h>

/* More of the program's memory is sent in several copies, so that none needs its size twice. */
#define SENT_AT_ONCE (16u << 20)

#define ADDRESS(at) ((void *)(uintptr_t)(at))

/* @host: what @to or @from is. @stream_at: the word of the stream; 0: the call has none. */
static CUresult copy_bytes(unsigned int number, uint64_t to, uint64_t from, size_t bytes,
                           const void *host, unsigned int stream_at, CUstream stream)
{
    uint64_t words[SIGNATURE_ARGUMENTS] = {to, from, bytes};
    size_t at_once = shared_contains(host, bytes) || bytes <= SENT_AT_ONCE ? bytes : SENT_AT_ONCE;
    CUresult result;

    if (stream_at)
        words[stream_at] = (uintptr_t)stream;
    do {
        words[2] = bytes < at_once ? bytes : at_once;
        result = (CUresult)(stream_at ? remote_post(number, words) : remote_call(number, words));
        words[0] += words[2];
        words[1] += words[2];
        bytes -= words[2];
    } while (bytes && result == CUDA_SUCCESS);
    return result;
}

#define TO_DEVICE(name)                                                                            \
    EXPORT CUresult name(CUdeviceptr to, const void *from, size_t bytes);                          \
    CUresult name(CUdeviceptr to, const void *from, size_t bytes)                                  \
    {                                                                                              \
        return copy_bytes(CALL_##name, to, (uintptr_t)from, bytes, from, 0, NULL);                 \
    }
TO_DEVICE(cuMemcpyHtoD_v2)
TO_DEVICE(cuMemcpyHtoD_v2_ptds)

#define TO_HOST(name)                                                                              \
    EXPORT CUresult name(void *to, CUdeviceptr from, size_t bytes);                                \
    CUresult name(void *to, CUdeviceptr from, size_t bytes)                                        \
    {                                                                                              \
        return copy_bytes(CALL_##name, (uintptr_t)to, from, bytes, to, 0, NULL);                   \
    }
TO_HOST(cuMemcpyDtoH_v2)
TO_HOST(cuMemcpyDtoH_v2_ptds)

#define TO_DEVICE_ASYNC(name)                                                                      \
    EXPORT CUresult name(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);         \
    CUresult name(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)                 \
    {                                                                                              \
        return copy_bytes(CALL_##name, to, (uintptr_t)from, bytes, from, 3, stream);               \
    }
TO_DEVICE_ASYNC(cuMemcpyHtoDAsync_v2)
TO_DEVICE_ASYNC(cuMemcpyHtoDAsync_v2_ptsz)

#define TO_HOST_ASYNC(name)                                                                        \
    EXPORT CUresult name(void *to, CUdeviceptr from, size_t bytes, CUstream stream);               \
    CUresult name(void *to, CUdeviceptr from, size_t bytes, CUstream stream)                       \
    {                                                                                              \
        return copy_bytes(CALL_##name, (uintptr_t)to, from, bytes, to, 3, stream);                 \
    }
TO_HOST_ASYNC(cuMemcpyDtoHAsync_v2)
TO_HOST_ASYNC(cuMemcpyDtoHAsync_v2_ptsz)

/* Between two places of the program it is the program's copy. */
#define ANYWHERE(name, from_host, to_host)                                                         \
    EXPORT CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes);                          \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes)                                  \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {to, from, bytes};                             \
        bool to_device = place_is_device(to), from_device = place_is_device(from);                 \
                                                                                                   \
        if (to_device && from_device)                                                              \
            return remote_call(CALL_##name, words);                                                \
        if (to_device)                                                                             \
            return from_host(to, ADDRESS(from), bytes);                                            \
        if (from_device)                                                                           \
            return to_host(ADDRESS(to), from, bytes);                                              \
        memmove(ADDRESS(to), ADDRESS(from), bytes);                                                \
        return connect_state();                                                                    \
    }
ANYWHERE(cuMemcpy, cuMemcpyHtoD_v2, cuMemcpyDtoH_v2)
ANYWHERE(cuMemcpy_ptds, cuMemcpyHtoD_v2_ptds, cuMemcpyDtoH_v2_ptds)

CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream);

#define ANYWHERE_ASYNC(name, from_host, to_host, wait)                                             \
    EXPORT CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);         \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)                 \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {to, from, bytes, (uintptr_t)stream};          \
        bool to_device = place_is_device(to), from_device = place_is_device(from);                 \
        CUresult result;                                                                           \
                                                                                                   \
        if (to_device && from_device)                                                              \
            return remote_post(CALL_##name, words);                                                \
        if (to_device)                                                                             \
            return from_host(to, ADDRESS(from), bytes, stream);                                    \
        if (from_device)                                                                           \
            return to_host(ADDRESS(to), from, bytes, stream);                                      \
        result = wait(stream);                                                                     \
        if (result == CUDA_SUCCESS)                                                                \
            memmove(ADDRESS(to), ADDRESS(from), bytes);                                            \
        return result;                                                                             \
    }
ANYWHERE_ASYNC(cuMemcpyAsync, cuMemcpyHtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuStreamSynchronize)
ANYWHERE_ASYNC(cuMemcpyAsync_ptsz, cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyDtoHAsync_v2_ptsz,
               cuStreamSynchronize_ptsz)

/* The attributes say where the memory is, which we know, and when it may be read: it is read at
 * once. */
#define WITH_ATTRIBUTES(name, as)                                                                  \
    EXPORT CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes, const void *attributes,   \
                         CUstream stream);                                                         \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes, const void *attributes,          \
                  CUstream stream)                                                                 \
    {                                                                                              \
        return attributes ? as(to, from, bytes, stream) : CUDA_ERROR_INVALID_VALUE;                \
    }
WITH_ATTRIBUTES(cuMemcpyWithAttributesAsync, cuMemcpyAsync)
WITH_ATTRIBUTES(cuMemcpyWithAttributesAsync_ptsz, cuMemcpyAsync_ptsz)
