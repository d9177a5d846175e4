// SPDX-License-Identifier: MIT
/* Memory of the host that the GPU reaches. */
#include "places.h"
#include "remote.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CUDA_ERROR_ALREADY_REGISTERED ((CUresult)712)
#define CUDA_ERROR_NOT_REGISTERED     ((CUresult)713)

/* For writing: no memory is freed meanwhile. */
static pthread_rwlock_t freeing = PTHREAD_RWLOCK_INITIALIZER;

static CUresult register_memory(unsigned int number, void *at, size_t bytes)
{
    const struct hand_host_memory head = {(uintptr_t)at, bytes, 0};
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};

    return exchange_run(&ask);
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
    if (result != CUDA_SUCCESS) {
        shared_end(at);
        return result;
    }
    shared_mark_pinned(at);
    place_add((uintptr_t)at, bytes);
    *to = at;
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

static CUresult free_pinned(void *at)
{
    CUresult result;

    if (!shared_contains(at, 1))
        return connect_state() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : connect_state();
    place_end((uintptr_t)at);
    result = register_memory(CALL_cuMemFreeHost, at, 1);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_LAUNCH_FAILED ||
        result == CUDA_ERROR_NOT_REGISTERED)
        shared_end(at);
    return result;
}

EXPORT CUresult cuMemFreeHost(void *at);
CUresult cuMemFreeHost(void *at)
{
    CUresult result;

    pthread_rwlock_rdlock(&freeing);
    result = free_pinned(at);
    pthread_rwlock_unlock(&freeing);
    return result;
}

void memory_begin_child(void)
{
    /* Not pthread_rwlock_init(), whose version glibc 2.34 changed. */
    freeing = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}

void memory_end_context(void)
{
    pthread_rwlock_wrlock(&freeing);
    shared_end_unregistered();
    pthread_rwlock_unlock(&freeing);
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

/*
 * Advice and moves are for pages of which each has a place of its own. Ours have one place for
 * ever, so they are taken, and nothing is done.
 */
#define ADVISE(name, type)                                                                         \
    EXPORT CUresult name(CUdeviceptr at, size_t bytes, unsigned int advice, type where);           \
    CUresult name(CUdeviceptr at, size_t bytes, unsigned int advice, type where)                   \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {at, bytes, advice, where};                    \
                                                                                                   \
        return shared_contains((const void *)(uintptr_t)at, bytes)                                 \
                   ? connect_state()                                                               \
                   : (CUresult)remote_call(CALL_##name, words);                                    \
    }
ADVISE(cuMemAdvise, uint32_t)
ADVISE(cuMemAdvise_v2, uint64_t)

#define PREFETCH(name)                                                                             \
    EXPORT CUresult name(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream);          \
    CUresult name(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream)                  \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {at, bytes, (uint32_t)device,                  \
                                                     (uintptr_t)stream};                           \
                                                                                                   \
        return shared_contains((const void *)(uintptr_t)at, bytes)                                 \
                   ? connect_state()                                                               \
                   : (CUresult)remote_post(CALL_##name, words);                                    \
    }
PREFETCH(cuMemPrefetchAsync)
PREFETCH(cuMemPrefetchAsync_ptsz)

#define PREFETCH_TO(name)                                                                          \
    EXPORT CUresult name(CUdeviceptr at, size_t bytes, uint64_t where, unsigned int flags,         \
                         CUstream stream);                                                         \
    CUresult name(CUdeviceptr at, size_t bytes, uint64_t where, unsigned int flags,                \
                  CUstream stream)                                                                 \
    {                                                                                              \
        const uint64_t words[SIGNATURE_ARGUMENTS] = {at, bytes, where, flags, (uintptr_t)stream};  \
                                                                                                   \
        return shared_contains((const void *)(uintptr_t)at, bytes)                                 \
                   ? connect_state()                                                               \
                   : (CUresult)remote_post(CALL_##name, words);                                    \
    }
PREFETCH_TO(cuMemPrefetchAsync_v2)
PREFETCH_TO(cuMemPrefetchAsync_v2_ptsz)

CUresult cuMemRangeGetAttribute(void *data, size_t bytes, unsigned int attribute, CUdeviceptr at,
                                size_t count);

EXPORT CUresult cuMemRangeGetAttributes(void **data, size_t *bytes, unsigned int *attributes,
                                        size_t attributes_count, CUdeviceptr at, size_t count);
CUresult cuMemRangeGetAttributes(void **data, size_t *bytes, unsigned int *attributes,
                                 size_t attributes_count, CUdeviceptr at, size_t count)
{
    CUresult result = connect_state();

    if (result == CUDA_SUCCESS && (!data || !bytes || !attributes || !attributes_count))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < attributes_count && result == CUDA_SUCCESS; i++)
        result = cuMemRangeGetAttribute(data[i], bytes[i], attributes[i], at, count);
    return result;
}

/* Programs that ask first are told what cuMemHostRegister() does. */
enum { DEVICE_REGISTERS_HOST_MEMORY = 99 };

EXPORT CUresult cuDeviceGetAttribute(int *to, unsigned int attribute, CUdevice device);
CUresult cuDeviceGetAttribute(int *to, unsigned int attribute, CUdevice device)
{
    const uint64_t words[SIGNATURE_ARGUMENTS] = {(uintptr_t)to, attribute, (uint32_t)device};
    CUresult result = (CUresult)remote_keep(CALL_cuDeviceGetAttribute, words);

    if (result == CUDA_SUCCESS && attribute == DEVICE_REGISTERS_HOST_MEMORY)
        *to = 0;
    return result;
}

/*
 * Memory that the program has from elsewhere cannot be what both see. It may say that it will copy
 * from and to it, which works as it does without; but not that the GPU is to reach it.
 */
enum { REGISTER_PORTABLE = 1, REGISTER_DEVICEMAP = 2, REGISTER_ALL = 15 };

struct registered {
    struct registered *next;
    uintptr_t at;
    size_t bytes;
};

static pthread_mutex_t registered_lock = PTHREAD_MUTEX_INITIALIZER;
static struct registered *registered;

static CUresult add_registered(uintptr_t at, size_t bytes)
{
    struct registered *one = malloc(sizeof(*one)), *other;

    if (!one)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *one = (struct registered){.at = at, .bytes = bytes};
    pthread_mutex_lock(&registered_lock);
    for (other = registered; other; other = other->next)
        if (at < other->at + other->bytes && other->at < at + bytes)
            break;
    if (!other) {
        one->next = registered;
        registered = one;
    }
    pthread_mutex_unlock(&registered_lock);
    if (!other)
        return CUDA_SUCCESS;
    free(one);
    return CUDA_ERROR_ALREADY_REGISTERED;
}

EXPORT CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned int flags);
CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned int flags)
{
    CUresult result = connect_state();
    uintptr_t end;

    if (result != CUDA_SUCCESS)
        return result;
    if (!at || !bytes || flags > REGISTER_ALL || __builtin_add_overflow((uintptr_t)at, bytes, &end))
        return CUDA_ERROR_INVALID_VALUE;
    if (shared_contains(at, 1))
        return CUDA_ERROR_ALREADY_REGISTERED;
    if (flags & ~(unsigned int)REGISTER_PORTABLE)
        return (CUresult)remote_refuse("cuMemHostRegister for the GPU",
                                       "it reaches what cuMemHostAlloc gives");
    return add_registered((uintptr_t)at, bytes);
}

EXPORT CUresult cuMemHostRegister(void *at, size_t bytes, unsigned int flags);
CUresult cuMemHostRegister(void *at, size_t bytes, unsigned int flags)
{
    return cuMemHostRegister_v2(at, bytes, flags);
}

EXPORT CUresult cuMemHostUnregister(void *at);
CUresult cuMemHostUnregister(void *at)
{
    struct registered **place = &registered, *found;
    CUresult result = connect_state();

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&registered_lock);
    while (*place && (*place)->at != (uintptr_t)at)
        place = &(*place)->next;
    found = *place;
    if (found)
        *place = found->next;
    pthread_mutex_unlock(&registered_lock);
    free(found);
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_REGISTERED;
}
