// SPDX-License-Identifier: MIT
/* Memory of the host that the GPU reaches, and what the driver knows of an address. */
#include "remote.h"

#include <stdlib.h>
#include <string.h>

static CUresult register_memory(unsigned int number, void *at, size_t bytes)
{
    const struct hand_host_memory head = {(uintptr_t)at, bytes, 0};
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};

    return exchange(&ask);
}

/* @flags: PORTABLE and DEVICEMAP are always so; WRITECOMBINED is a hint. */
static CUresult allocate_pinned(void **to, size_t bytes)
{
    CUresult result = connect_state();
    void *at;

    if (result != CUDA_SUCCESS)
        return result;
    if (!to || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    at = shared_new(bytes);
    if (!at)
        return connect_is_dead() ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_OUT_OF_MEMORY;
    result = register_memory(CALL_cuMemHostAlloc, at, bytes);
    if (result == CUDA_SUCCESS)
        *to = at;
    else
        shared_end(at);
    return result;
}

EXPORT CUresult cuMemHostAlloc(void **to, size_t bytes, unsigned int flags);
CUresult cuMemHostAlloc(void **to, size_t bytes, unsigned int flags)
{
    return flags & ~7u ? CUDA_ERROR_INVALID_VALUE : allocate_pinned(to, bytes);
}

EXPORT CUresult cuMemAllocHost_v2(void **to, size_t bytes);
CUresult cuMemAllocHost_v2(void **to, size_t bytes)
{
    return allocate_pinned(to, bytes);
}

EXPORT CUresult cuMemAllocHost(void **to, unsigned int bytes);
CUresult cuMemAllocHost(void **to, unsigned int bytes)
{
    return allocate_pinned(to, bytes);
}

EXPORT CUresult cuMemFreeHost(void *at);
CUresult cuMemFreeHost(void *at)
{
    CUresult result;

    if (!shared_contains(at, 1))
        return connect_state() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : connect_state();
    result = register_memory(CALL_cuMemFreeHost, at, 1);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_LAUNCH_FAILED)
        shared_end(at);
    return result;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *to, void *at, unsigned int flags);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *to, void *at, unsigned int flags)
{
    if (!to || flags || !shared_contains(at, 1))
        return CUDA_ERROR_INVALID_VALUE;
    *to = (uintptr_t)at;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *to, void *at, unsigned int flags);
CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *to, void *at, unsigned int flags)
{
    (void)to;
    (void)at;
    (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuMemHostGetFlags(unsigned int *flags, void *at);
CUresult cuMemHostGetFlags(unsigned int *flags, void *at)
{
    if (!flags || !shared_contains(at, 1))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = 3;
    return CUDA_SUCCESS;
}

/* What is managed is such memory here. */
EXPORT CUresult cuMemFree_v2(CUdeviceptr at);
CUresult cuMemFree_v2(CUdeviceptr at)
{
    const uint64_t words[SIGNATURE_ARGUMENTS] = {at};

    if (shared_contains((const void *)(uintptr_t)at, 1))
        return cuMemFreeHost((void *)(uintptr_t)at);
    return (CUresult)remote_call(CALL_cuMemFree_v2, words);
}

/* Pages that both see: right, and over the bus. */
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *to, size_t bytes, unsigned int flags);
CUresult cuMemAllocManaged(CUdeviceptr *to, size_t bytes, unsigned int flags)
{
    void *at;
    CUresult result =
        !to || (flags != 1 && flags != 2) ? CUDA_ERROR_INVALID_VALUE : allocate_pinned(&at, bytes);

    if (result == CUDA_SUCCESS)
        *to = (uintptr_t)at;
    return result;
}

enum { POINTER_CONTEXT = 1, POINTER_HOST_POINTER = 4, POINTER_POOL = 17 };

/* As many bytes as the driver would have written. */
static void put_value(void *to, unsigned int attribute, const struct hand_value *value)
{
    uint64_t is = value->value;

    if (attribute == POINTER_CONTEXT || attribute == POINTER_POOL)
        is = object_of_number(is);
    for (unsigned int i = 0; i < 8; i++)
        if (value->written & (1u << i))
            ((uint8_t *)to)[i] = (uint8_t)(is >> (8 * i));
}

static CUresult get_attributes(unsigned int number, unsigned int count,
                               const unsigned int *attributes, void **data, CUdeviceptr address)
{
    const struct hand_pointer head = {.address = address, .count = count};
    struct hand_value values[HAND_ATTRIBUTES_MOST] = {{0}};
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};
    CUresult result;

    if (!count || count > HAND_ATTRIBUTES_MOST || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    exchange_in(&ask, attributes, count * sizeof(*attributes));
    exchange_out(&ask, values, count * sizeof(*values));
    result = exchange(&ask);
    for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (data[i])
            put_value(data[i], attributes[i], &values[i]);
    return result;
}

EXPORT CUresult cuPointerGetAttribute(void *data, unsigned int attribute, CUdeviceptr address);
CUresult cuPointerGetAttribute(void *data, unsigned int attribute, CUdeviceptr address)
{
    return data ? get_attributes(CALL_cuPointerGetAttribute, 1, &attribute, &data, address)
                : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuPointerGetAttributes(unsigned int count, unsigned int *attributes, void **data,
                                       CUdeviceptr address);
CUresult cuPointerGetAttributes(unsigned int count, unsigned int *attributes, void **data,
                                CUdeviceptr address)
{
    return get_attributes(CALL_cuPointerGetAttributes, count, attributes, data, address);
}

EXPORT CUresult cuPointerSetAttribute(const void *value, unsigned int attribute,
                                      CUdeviceptr address);
CUresult cuPointerSetAttribute(const void *value, unsigned int attribute, CUdeviceptr address)
{
    struct hand_pointer head = {.address = address, .count = 1};
    struct exchange set = {
        .number = CALL_cuPointerSetAttribute, .head = &head, .head_bytes = sizeof(head)};

    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    head.value = *(const unsigned int *)value;
    exchange_in(&set, &attribute, sizeof(attribute));
    return exchange(&set);
}
