// SPDX-License-Identifier: MIT
/*
 * Physical memory that the program maps itself: cuMemCreate and related calls. It is charged to the
 * GPU in its properties, whatever context the thread has, until no handle or mapping refers to it.
 */
#include "vmm.h"

#include <stdlib.h>
#include <string.h>

#include "forks.h"
#include "mappings.h"
#include "parts.h"
#include "ranges.h"
#include "real.h"

/* @charge: none yet for an import, whose size nobody says before it is mapped
 * @named, @device, @inode: for an import: what other processes know it by */
struct physical {
    struct charge charge;
    unsigned int references;
    struct gpu *gpu;
    bool imported;
    bool named;
    uint64_t device;
    uint64_t inode;
};

/* @owned: how often the program has to release it */
struct handle {
    struct handle *next;
    CUmemGenericAllocationHandle handle;
    unsigned int owned;
    struct physical *physical;
};

#define BUCKETS 1024

/* Over all that follows. Held over the driver's calls too, which change the same things; mapping is
 * not a thing that programs do often. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle *handles[BUCKETS];
static struct mappings mappings;
static struct parts parts;

static struct handle **place_of(CUmemGenericAllocationHandle handle)
{
    struct handle **at = &handles[(handle * 0x9e3779b97f4a7c15ull) >> 54];

    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

static struct handle *add_handle(CUmemGenericAllocationHandle number, struct physical *physical)
{
    struct handle **at = place_of(number);
    struct handle *handle = *at;

    if (!handle) {
        handle = calloc(1, sizeof(*handle));
        if (!handle)
            return NULL;
        handle->handle = number;
        handle->physical = physical;
        *at = handle;
    }
    handle->owned++;
    physical->references++;
    return handle;
}

static void put(struct physical *physical)
{
    if (--physical->references)
        return;
    charge_give(&physical->charge);
    free(physical);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct physical *physical;
    CUresult result;

    if (real_depth || !handle || !prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !gpu_of(prop->location.id))
        return REAL(cuMemCreate)(handle, size, prop, flags);
    physical = calloc(1, sizeof(*physical));
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->gpu = gpu_of(prop->location.id);
    if (!charge_take(physical->gpu, size, &physical->charge)) {
        free(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    result = DRIVER(cuMemCreate, handle, size, prop, flags);
    if (result == CUDA_SUCCESS && !add_handle(*handle, physical)) {
        DRIVER(cuMemRelease, *handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    if (result != CUDA_SUCCESS) {
        charge_give(&physical->charge);
        free(physical);
    }
    return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle number)
{
    struct handle **at, *handle;
    CUresult result;

    if (real_depth)
        return REAL(cuMemRelease)(number);
    pthread_mutex_lock(&lock);
    result = DRIVER(cuMemRelease, number);
    at = place_of(number);
    handle = *at;
    if (result == CUDA_SUCCESS && handle) {
        struct physical *physical = handle->physical;

        if (--handle->owned == 0) {
            *at = handle->next;
            free(handle);
        }
        put(physical);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Nobody else of the slice may have it at that moment: then it is charged anew. */
static bool charge_named(struct physical *physical, uint64_t bytes)
{
    uint64_t before = physical->charge.bytes;

    charge_give(&physical->charge);
    if (charge_import(physical->gpu, physical->device, physical->inode, bytes, &physical->charge))
        return true;
    if (before)
        charge_import(physical->gpu, physical->device, physical->inode, before, &physical->charge);
    return false;
}

/* Nobody says how large an import is: it is as far as it was ever mapped. */
static bool charge_imported(struct physical *physical, uint64_t bytes)
{
    if (!physical->imported || bytes <= physical->charge.bytes)
        return true;
    if (physical->named)
        return charge_named(physical, bytes);
    if (physical->charge.bytes)
        return charge_resize(&physical->charge, bytes);
    return charge_take(physical->gpu, bytes, &physical->charge);
}

static CUresult map(struct physical *physical, CUdeviceptr ptr, size_t size, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    const struct mapping mapping = {.at = ptr, .bytes = size, .physical = physical};
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (mappings_make_room(&mappings) && charge_imported(physical, offset + size))
        result = DRIVER(cuMemMap, ptr, size, offset, handle, flags);
    if (result != CUDA_SUCCESS)
        return result;
    mappings_add(&mappings, &mapping);
    physical->references++;
    return result;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle number,
                  unsigned long long flags)
{
    struct handle *handle;
    CUresult result;

    if (real_depth)
        return REAL(cuMemMap)(ptr, size, offset, number, flags);
    pthread_mutex_lock(&lock);
    handle = *place_of(number);
    result = handle ? map(handle->physical, ptr, size, offset, number, flags)
                    : DRIVER(cuMemMap, ptr, size, offset, number, flags);
    pthread_mutex_unlock(&lock);
    return result;
}

/* One call can unmap several whole mappings. */
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    unsigned int index;
    CUresult result;

    if (real_depth)
        return REAL(cuMemUnmap)(ptr, size);
    pthread_mutex_lock(&lock);
    result = DRIVER(cuMemUnmap, ptr, size);
    index = mappings_from(&mappings, ptr);
    while (result == CUDA_SUCCESS && index < mappings.count &&
           mappings.list[index].at - ptr < size) {
        put(mappings.list[index].physical);
        mappings_remove(&mappings, index);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

_Static_assert(sizeof(CUarrayMapInfo) == 96, "as argument_types.def has it");

static void begin_map(const CUarrayMapInfo *info, CUcontext context, uint64_t change)
{
    const struct handle *handle = *place_of(info->memHandle.memHandle);
    struct part part = {.info = *info, .context = context, .change = change};

    if (!handle)
        return;
    part.physical = handle->physical;
    part.physical->references++;
    parts_add(&parts, &part);
}

/*
 * Before the call, in which the handles may be released. 0: no memory. What is unmapped in several
 * pieces is charged until its array ends.
 */
static uint64_t begin_change(const CUarrayMapInfo *list, unsigned int count)
{
    CUcontext context = NULL;
    uint64_t change = 0;

    DRIVER(cuCtxGetCurrent, &context);
    pthread_mutex_lock(&lock);
    if (parts_make_room(&parts, count))
        change = ++parts.changes;
    for (unsigned int i = 0; change && i < count; i++) {
        if (list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP)
            begin_map(&list[i], context, change);
        else if (list[i].memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
            parts_unmap(&parts, &list[i], change);
    }
    pthread_mutex_unlock(&lock);
    return change;
}

static void end_change(uint64_t change, CUresult result)
{
    struct physical *physical;

    pthread_mutex_lock(&lock);
    while ((physical = parts_take_changed(&parts, change, result == CUDA_SUCCESS)))
        put(physical);
    parts_settle(&parts, change);
    pthread_mutex_unlock(&lock);
}

/* Without a lock, as the driver may wait for the stream. */
#define MAP_ARRAYS(name)                                                                           \
    CUresult name(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)               \
    {                                                                                              \
        uint64_t change;                                                                           \
        CUresult result;                                                                           \
                                                                                                   \
        if (real_depth || !mapInfoList)                                                            \
            return REAL(name)(mapInfoList, count, hStream);                                        \
        change = begin_change(mapInfoList, count);                                                 \
        if (!change)                                                                               \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        result = DRIVER(name, mapInfoList, count, hStream);                                        \
        end_change(change, result);                                                                \
        return result;                                                                             \
    }
MAP_ARRAYS(cuMemMapArrayAsync)
MAP_ARRAYS(cuMemMapArrayAsync_ptsz)

void vmm_rename_array(const void *array, const void *other)
{
    pthread_mutex_lock(&lock);
    parts_rename(&parts, array, other);
    pthread_mutex_unlock(&lock);
}

void vmm_array_ended(const void *array)
{
    struct physical *physical;

    pthread_mutex_lock(&lock);
    while ((physical = parts_take_of_array(&parts, array)))
        put(physical);
    pthread_mutex_unlock(&lock);
}

void vmm_context_ended(CUcontext context)
{
    struct physical *physical;

    pthread_mutex_lock(&lock);
    while ((physical = parts_take_of_context(&parts, context)))
        put(physical);
    pthread_mutex_unlock(&lock);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    const struct mapping *mapping;
    CUresult result;

    if (real_depth || !handle)
        return REAL(cuMemRetainAllocationHandle)(handle, addr);
    pthread_mutex_lock(&lock);
    result = DRIVER(cuMemRetainAllocationHandle, handle, addr);
    mapping = mappings_find(&mappings, (uintptr_t)addr);
    /* If there is no memory to note it, its release is not counted either. */
    if (result == CUDA_SUCCESS && mapping)
        add_handle(*handle, mapping->physical);
    pthread_mutex_unlock(&lock);
    return result;
}

/* The receiver of the descriptor can import it at once. */
CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle number,
                                      CUmemAllocationHandleType handleType,
                                      unsigned long long flags)
{
    uint64_t device, inode;
    struct handle *handle;
    CUresult result;

    if (real_depth)
        return REAL(cuMemExportToShareableHandle)(shareableHandle, number, handleType, flags);
    pthread_mutex_lock(&lock);
    result = DRIVER(cuMemExportToShareableHandle, shareableHandle, number, handleType, flags);
    handle = *place_of(number);
    if (result == CUDA_SUCCESS && handle &&
        handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
        charge_names(*(const int *)shareableHandle, &device, &inode))
        charge_export(&handle->physical->charge, device, inode);
    pthread_mutex_unlock(&lock);
    return result;
}

/*
 * The GPU of imported memory. A thread without a context can import, too. NULL: what has no such
 * properties is no memory but a multicast object, to which memory of others is bound.
 */
static struct gpu *gpu_of_handle(CUmemGenericAllocationHandle number)
{
    CUmemAllocationProp property = {0};

    if (DRIVER(cuMemGetAllocationPropertiesFromHandle, &property, number) != CUDA_SUCCESS)
        return NULL;
    return property.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? gpu_of(property.location.id)
                                                                 : NULL;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                        CUmemAllocationHandleType shHandleType)
{
    struct physical *physical;
    CUresult result;

    if (real_depth || !handle)
        return REAL(cuMemImportFromShareableHandle)(handle, osHandle, shHandleType);
    physical = calloc(1, sizeof(*physical));
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->imported = true;
    if (shHandleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        physical->named =
            charge_names((int)(intptr_t)osHandle, &physical->device, &physical->inode);
    pthread_mutex_lock(&lock);
    result = DRIVER(cuMemImportFromShareableHandle, handle, osHandle, shHandleType);
    if (result == CUDA_SUCCESS)
        physical->gpu = gpu_of_handle(*handle);
    if (result == CUDA_SUCCESS && !add_handle(*handle, physical)) {
        DRIVER(cuMemRelease, *handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    if (result != CUDA_SUCCESS)
        free(physical);
    return result;
}

/* So this is none, even if its driver says where it is. */
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev)
{
    CUresult result = DRIVER(cuMulticastAddDevice, mcHandle, dev);
    struct handle *handle;

    if (result != CUDA_SUCCESS || real_depth)
        return result;
    pthread_mutex_lock(&lock);
    handle = *place_of(mcHandle);
    if (handle && !handle->physical->charge.bytes)
        handle->physical->gpu = NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

void vmm_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(handles, 0, sizeof(handles));
    mappings = (struct mappings){0};
    parts = (struct parts){0};
}
