// SPDX-License-Identifier: MIT
/*
 * Physical memory that the program maps itself: cuMemCreate and related calls. It is charged to the
 * GPU in its properties, whatever context the thread has, until no handle or mapping refers to it.
 */
#include "vmm.h"

#include <stdlib.h>
#include <string.h>

#include "forks.h"
#include "join.h"
#include "mappings.h"
#include "parts.h"
#include "ranges.h"
#include "real.h"
#include "room.h"

/* @growing: over @charge while it grows or becomes an object; taken without the lock below
 * @charge: none yet for an import, whose size nobody says before it is mapped
 * @named, @device, @inode: for an import: what other processes know it by */
struct physical {
    pthread_mutex_t growing;
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

/*
 * Over all that follows, and never held over a call of the driver's: that may wait for work on one
 * GPU, and another thread uses another GPU meanwhile. What a call gives back is taken out before
 * it, for right after it another thread can get the same handle; what it makes is noted after it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle *handles[BUCKETS];
static struct mappings mappings;
/* Calls that are mapping something, each of which has a place in the list. */
static unsigned int mapping_now;
/* Numbers of calls that unmap. */
static uint64_t unmaps;
static struct parts parts;

static struct handle **place_of(CUmemGenericAllocationHandle handle)
{
    struct handle **at = &handles[(handle * 0x9e3779b97f4a7c15ull) >> 54];

    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

/* One that the driver gives out once more is of the same memory. */
static bool add_handle(CUmemGenericAllocationHandle number, struct physical *physical)
{
    struct handle **at = place_of(number);

    if (!*at) {
        *at = calloc(1, sizeof(**at));
        if (!*at)
            return false;
        **at = (struct handle){.handle = number, .physical = physical};
    }
    (*at)->owned++;
    (*at)->physical->references++;
    return true;
}

static struct physical *physical_new(struct gpu *gpu)
{
    struct physical *physical = calloc(1, sizeof(*physical));

    if (!physical)
        return NULL;
    pthread_mutex_init(&physical->growing, NULL);
    physical->references = 1;
    physical->gpu = gpu;
    return physical;
}

static void put_physical(struct physical *physical)
{
    if (--physical->references)
        return;
    charge_give(&physical->charge);
    free(physical);
}

static void let_physical_go(struct physical *physical)
{
    pthread_mutex_lock(&lock);
    put_physical(physical);
    pthread_mutex_unlock(&lock);
}

/* It stays until it is put. NULL: the handle is not known. */
static struct physical *hold_physical(CUmemGenericAllocationHandle number)
{
    struct physical *physical = NULL;
    struct handle *handle;

    pthread_mutex_lock(&lock);
    handle = *place_of(number);
    if (handle) {
        physical = handle->physical;
        physical->references++;
    }
    pthread_mutex_unlock(&lock);
    return physical;
}

/* After the driver gave out the handle. */
static CUresult note_handle(CUmemGenericAllocationHandle handle, struct physical *physical)
{
    bool noted;

    pthread_mutex_lock(&lock);
    noted = add_handle(handle, physical);
    pthread_mutex_unlock(&lock);
    if (noted)
        return CUDA_SUCCESS;
    DRIVER(cuMemRelease, handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Else the driver refuses it, however much memory is free. */
static bool is_whole(size_t size, const CUmemAllocationProp *prop)
{
    size_t unit = 0;

    return DRIVER(cuMemGetAllocationGranularity, &unit, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
               CUDA_SUCCESS &&
           unit && size && size % unit == 0;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct physical *physical;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (real_depth || !handle || !prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !gpu_of(prop->location.id))
        return REAL(cuMemCreate)(handle, size, prop, flags);
    physical = physical_new(gpu_of(prop->location.id));
    if (!physical)
        return result;
    if (room_take(physical->gpu, size, &physical->charge))
        result = DRIVER(cuMemCreate, handle, size, prop, flags);
    else if (!is_whole(size, prop))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = note_handle(*handle, physical);
    let_physical_go(physical);
    return result;
}

/* Under the lock: once less the program's. NULL: it still has the handle, or it is not known. */
static struct handle *disown_handle(CUmemGenericAllocationHandle number, struct physical **physical)
{
    struct handle **at = place_of(number), *handle = *at;

    *physical = handle ? handle->physical : NULL;
    if (!handle || --handle->owned)
        return NULL;
    *at = handle->next;
    return handle;
}

/* The driver has refused to release it. */
static void own_handle_again(CUmemGenericAllocationHandle number, struct handle *handle)
{
    struct handle **at = place_of(number);

    if (!*at && handle) {
        handle->next = NULL;
        *at = handle;
        handle = NULL;
    }
    if (*at)
        (*at)->owned++;
    free(handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle number)
{
    struct physical *physical;
    struct handle *handle;
    CUresult result;

    if (real_depth)
        return REAL(cuMemRelease)(number);
    pthread_mutex_lock(&lock);
    handle = disown_handle(number, &physical);
    pthread_mutex_unlock(&lock);
    result = DRIVER(cuMemRelease, number);
    if (!physical)
        return result;
    pthread_mutex_lock(&lock);
    if (result == CUDA_SUCCESS) {
        free(handle);
        put_physical(physical);
    } else {
        own_handle_again(number, handle);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static bool grow_named(struct physical *physical, uint64_t bytes)
{
    struct charge *charge = &physical->charge;

    if (!charge->object)
        return charge_import(physical->gpu, physical->device, physical->inode, bytes, charge);
    if (!governor_member_import(physical->gpu->member, charge->object, bytes))
        return false;
    charge->bytes = bytes;
    return true;
}

/* Nobody says how large an import is: it is as far as it was ever mapped. */
static bool grow_import(struct physical *physical, uint64_t bytes)
{
    if (bytes <= physical->charge.bytes)
        return true;
    if (physical->named)
        return grow_named(physical, bytes);
    if (physical->charge.bytes)
        return charge_resize(&physical->charge, bytes);
    return room_take(physical->gpu, bytes, &physical->charge);
}

/* The driver has refused to map it as far as that. */
static void shrink_import(struct physical *physical, uint64_t bytes)
{
    if (bytes == physical->charge.bytes)
        return;
    if (bytes && !physical->named) {
        charge_resize(&physical->charge, bytes);
        return;
    }
    charge_give(&physical->charge);
    if (bytes)
        grow_import(physical, bytes);
}

static CUresult map_import(struct physical *physical, CUdeviceptr ptr, size_t size, size_t offset,
                           CUmemGenericAllocationHandle number, unsigned long long flags)
{
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t before;

    pthread_mutex_lock(&physical->growing);
    before = physical->charge.bytes;
    if (grow_import(physical, offset + size))
        result = DRIVER(cuMemMap, ptr, size, offset, number, flags);
    if (result != CUDA_SUCCESS)
        shrink_import(physical, before);
    pthread_mutex_unlock(&physical->growing);
    return result;
}

static bool begin_mapping(void)
{
    bool has_room;

    pthread_mutex_lock(&lock);
    has_room = mappings_make_room(&mappings, mapping_now + 1);
    mapping_now += has_room;
    pthread_mutex_unlock(&lock);
    return has_room;
}

/* The mapping has a reference to its memory from now on. */
static void end_mapping(const struct mapping *mapping, CUresult result)
{
    pthread_mutex_lock(&lock);
    mapping_now--;
    if (result == CUDA_SUCCESS)
        mappings_add(&mappings, mapping);
    else
        put_physical(mapping->physical);
    pthread_mutex_unlock(&lock);
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle number,
                  unsigned long long flags)
{
    struct mapping mapping = {.at = ptr, .bytes = size};
    CUresult result;

    if (real_depth)
        return REAL(cuMemMap)(ptr, size, offset, number, flags);
    mapping.physical = hold_physical(number);
    if (!mapping.physical)
        return DRIVER(cuMemMap, ptr, size, offset, number, flags);
    if (!begin_mapping()) {
        let_physical_go(mapping.physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = mapping.physical->imported
                 ? map_import(mapping.physical, ptr, size, offset, number, flags)
                 : DRIVER(cuMemMap, ptr, size, offset, number, flags);
    end_mapping(&mapping, result);
    return result;
}

/* One call can unmap several whole mappings. Returns its number. */
static uint64_t begin_unmap(CUdeviceptr ptr, size_t size)
{
    unsigned int index;
    uint64_t change;

    pthread_mutex_lock(&lock);
    change = ++unmaps;
    index = mappings_from(&mappings, ptr);
    for (; index < mappings.count && mappings.list[index].at - ptr < size; index++)
        if (!mappings.list[index].change)
            mappings.list[index].change = change;
    pthread_mutex_unlock(&lock);
    return change;
}

static void end_unmap(CUdeviceptr ptr, size_t size, uint64_t change, CUresult result)
{
    unsigned int index;

    pthread_mutex_lock(&lock);
    index = mappings_from(&mappings, ptr);
    while (index < mappings.count && mappings.list[index].at - ptr < size) {
        struct mapping *mapping = &mappings.list[index];

        if (mapping->change == change && result == CUDA_SUCCESS) {
            put_physical(mapping->physical);
            mappings_remove(&mappings, index);
            continue;
        }
        if (mapping->change == change)
            mapping->change = 0;
        index++;
    }
    pthread_mutex_unlock(&lock);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult result;
    uint64_t change;

    if (real_depth)
        return REAL(cuMemUnmap)(ptr, size);
    change = begin_unmap(ptr, size);
    result = DRIVER(cuMemUnmap, ptr, size);
    end_unmap(ptr, size, change, result);
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
        put_physical(physical);
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
        put_physical(physical);
    pthread_mutex_unlock(&lock);
}

void vmm_context_ended(CUcontext context)
{
    struct physical *physical;

    pthread_mutex_lock(&lock);
    while ((physical = parts_take_of_context(&parts, context)))
        put_physical(physical);
    pthread_mutex_unlock(&lock);
}

/* NULL: none is known to be mapped there. It stays until it is put. */
static struct physical *hold_mapped(uint64_t at)
{
    struct physical *physical = NULL;
    const struct mapping *mapping;

    pthread_mutex_lock(&lock);
    mapping = mappings_find(&mappings, at);
    if (mapping) {
        physical = mapping->physical;
        physical->references++;
    }
    pthread_mutex_unlock(&lock);
    return physical;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    struct physical *physical;
    CUresult result;

    if (real_depth || !handle)
        return REAL(cuMemRetainAllocationHandle)(handle, addr);
    physical = hold_mapped((uintptr_t)addr);
    result = DRIVER(cuMemRetainAllocationHandle, handle, addr);
    if (!physical)
        return result;
    if (result == CUDA_SUCCESS)
        result = note_handle(*handle, physical);
    let_physical_go(physical);
    return result;
}

/* The receiver of the descriptor can import it at once. */
static void name_exported(struct physical *physical, int fd)
{
    uint64_t device, inode;

    if (!charge_names(fd, &device, &inode))
        return;
    pthread_mutex_lock(&physical->growing);
    charge_export(&physical->charge, device, inode);
    pthread_mutex_unlock(&physical->growing);
}

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle number,
                                      CUmemAllocationHandleType handleType,
                                      unsigned long long flags)
{
    struct physical *physical;
    CUresult result;

    if (real_depth)
        return REAL(cuMemExportToShareableHandle)(shareableHandle, number, handleType, flags);
    physical = hold_physical(number);
    result = DRIVER(cuMemExportToShareableHandle, shareableHandle, number, handleType, flags);
    if (!physical)
        return result;
    if (result == CUDA_SUCCESS && handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        name_exported(physical, *(const int *)shareableHandle);
    let_physical_go(physical);
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
    physical = physical_new(NULL);
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->imported = true;
    if (shHandleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        physical->named =
            charge_names((int)(intptr_t)osHandle, &physical->device, &physical->inode);
    result = DRIVER(cuMemImportFromShareableHandle, handle, osHandle, shHandleType);
    if (result == CUDA_SUCCESS) {
        physical->gpu = gpu_of_handle(*handle);
        result = note_handle(*handle, physical);
    }
    let_physical_go(physical);
    return result;
}

/* So this is none, even if its driver says where it is. */
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev)
{
    CUresult result = DRIVER(cuMulticastAddDevice, mcHandle, dev);
    struct physical *physical;

    if (result != CUDA_SUCCESS || real_depth)
        return result;
    physical = hold_physical(mcHandle);
    if (!physical)
        return result;
    pthread_mutex_lock(&physical->growing);
    if (!physical->charge.bytes)
        physical->gpu = NULL;
    pthread_mutex_unlock(&physical->growing);
    let_physical_go(physical);
    return result;
}

void vmm_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(handles, 0, sizeof(handles));
    mappings = (struct mappings){0};
    mapping_now = 0;
    parts = (struct parts){0};
}
