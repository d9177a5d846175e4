// SPDX-License-Identifier: MIT
/* Memory that has a handle: physical memory that is mapped, and what processes hand to each other.
 */
#include "fake.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card.h"
#include "ptx/content.h"

/* @fd: its content; -1: it has none
 * @imported: the card's memory is another process's.
 * @multicast: no memory, but several devices' at once */
struct physical {
    uint64_t bytes;
    int fd;
    int device;
    unsigned int references;
    int imported;
    int multicast;
};

/* What a descriptor's file says. */
struct exported {
    uint64_t bytes;
    int device;
    int multicast;
};

#define MAPPED_MOST 8192

struct mapped {
    CUdeviceptr at;
    uint64_t bytes;
    struct physical *physical;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapped mapped[MAPPED_MOST];

void (*fake_in_mapping)(const char *name);

#define ENTER_MAPPING()                                                                            \
    do {                                                                                           \
        ENTER();                                                                                   \
        if (fake_in_mapping)                                                                       \
            fake_in_mapping(__func__);                                                             \
    } while (0)

static void put(struct physical *physical)
{
    if (--physical->references)
        return;
    if (!physical->imported && !physical->device)
        fake_give(physical->bytes);
    if (physical->fd >= 0)
        close(physical->fd);
    free(physical);
}

/* NULL: there is not so much. */
static struct physical *make_physical(uint64_t bytes, int device)
{
    struct physical *made = calloc(1, sizeof(*made));

    *made = (struct physical){.bytes = bytes, .fd = -1, .device = device, .references = 1};
    if (!content_is_on())
        return made;
    made->fd = memfd_create("fake-cuda-memory", MFD_CLOEXEC);
    if (made->fd < 0)
        abort();
    /* A size from a hostile program may be none of a file. */
    if (ftruncate(made->fd, (off_t)bytes) == 0)
        return made;
    close(made->fd);
    free(made);
    return NULL;
}

/* Addresses that are free again are the next to be given out. */
#define APART         (1ull << 36)
#define RESERVED_MOST 8192
static uint64_t reserved[RESERVED_MOST];

CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags)
{
    unsigned int i = 0;

    ENTER();
    (void)alignment;
    (void)wanted;
    (void)flags;
    if (!at || !bytes || bytes > APART)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    while (i < RESERVED_MOST && reserved[i])
        i++;
    *at = FAKE_RESERVED + i * APART;
    if (i < RESERVED_MOST && content_reserve(*at, bytes))
        reserved[i] = bytes;
    else
        i = RESERVED_MOST;
    pthread_mutex_unlock(&lock);
    return i < RESERVED_MOST ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Under the lock. */
static bool is_mapped(CUdeviceptr at, uint64_t bytes)
{
    for (unsigned int i = 0; i < MAPPED_MOST; i++)
        if (mapped[i].at && mapped[i].at < at + bytes && at < mapped[i].at + mapped[i].bytes)
            return true;
    return false;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    uint64_t index = (at - FAKE_RESERVED) / APART;
    bool is_whole;

    ENTER();
    pthread_mutex_lock(&lock);
    is_whole = at >= FAKE_RESERVED && index < RESERVED_MOST && bytes && reserved[index] == bytes &&
               !is_mapped(at, bytes);
    if (is_whole) {
        content_remove(at);
        reserved[index] = 0;
    }
    pthread_mutex_unlock(&lock);
    return is_whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    ENTER();
    (void)option;
    if (!bytes || !properties)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = 2 << 20;
    return CUDA_SUCCESS;
}

_Atomic unsigned int fake_creates_left = UINT_MAX;

/* True: this call is to find no memory. */
static bool is_last_create(void)
{
    static _Atomic bool is_known;

    if (!atomic_exchange(&is_known, true) && getenv("FAKE_CUDA_FAIL_CREATE"))
        fake_creates_left = (unsigned int)card_setting("FAKE_CUDA_FAIL_CREATE", 0) - 1;
    if (fake_creates_left == UINT_MAX)
        return false;
    return fake_creates_left-- == 0;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    struct physical *made;

    ENTER_MAPPING();
    (void)flags;
    if (!handle || !properties || !bytes || bytes % (2 << 20))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_last_create() || (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                             !fake_take(properties->location.id, bytes)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    made = make_physical(bytes, properties->location.id);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->imported = properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    *handle = (uintptr_t)made;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER_MAPPING();
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    put((struct physical *)(uintptr_t)handle);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    struct physical *physical = (struct physical *)(uintptr_t)handle;
    unsigned int i = 0;

    ENTER_MAPPING();
    (void)flags;
    if (!at || !physical || offset + bytes > physical->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    while (i < MAPPED_MOST && mapped[i].at)
        i++;
    if (i < MAPPED_MOST && physical->fd >= 0 && !content_back(at, bytes, physical->fd, offset))
        i = MAPPED_MOST;
    if (i < MAPPED_MOST) {
        mapped[i] = (struct mapped){.at = at, .bytes = bytes, .physical = physical};
        physical->references++;
    }
    pthread_mutex_unlock(&lock);
    return i < MAPPED_MOST ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    unsigned int count = 0;

    ENTER_MAPPING();
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < MAPPED_MOST; i++) {
        if (!mapped[i].at || mapped[i].at < at || mapped[i].at >= at + bytes)
            continue;
        content_unback(mapped[i].at, mapped[i].bytes);
        put(mapped[i].physical);
        mapped[i] = (struct mapped){0};
        count++;
    }
    pthread_mutex_unlock(&lock);
    return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Memory that is mapped cannot be reached before. */
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    bool allowed;

    ENTER();
    if (!access || !count)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    allowed = content_allow(at, bytes);
    pthread_mutex_unlock(&lock);
    return allowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

uint64_t fake_mapped_at(CUdeviceptr at, CUdeviceptr *base, int *device)
{
    uint64_t bytes = 0;

    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < MAPPED_MOST && !bytes; i++) {
        if (!mapped[i].at || at - mapped[i].at >= mapped[i].bytes)
            continue;
        *base = mapped[i].at;
        *device = mapped[i].physical->device;
        bytes = mapped[i].bytes;
    }
    pthread_mutex_unlock(&lock);
    return bytes;
}

#define PARTS_MOST 64

/* Parts of arrays, as they were mapped. */
static struct array_part {
    const void *array;
    CUcontext context;
    unsigned int level, x;
    struct physical *physical;
} parts[PARTS_MOST];

static CUresult map_part(const CUarrayMapInfo *info)
{
    struct physical *physical = (struct physical *)(uintptr_t)info->memHandle.memHandle;
    unsigned int i = 0;

    while (i < PARTS_MOST && parts[i].physical)
        i++;
    if (!physical || i == PARTS_MOST)
        return CUDA_ERROR_INVALID_VALUE;
    parts[i] = (struct array_part){.array = info->resource.array,
                                   .context = fake_current(),
                                   .level = info->subresource.sparseLevel.level,
                                   .x = info->subresource.sparseLevel.offsetX,
                                   .physical = physical};
    physical->references++;
    return CUDA_SUCCESS;
}

static void unmap_part(struct array_part *part)
{
    put(part->physical);
    *part = (struct array_part){0};
}

static void unmap_parts(const CUarrayMapInfo *info)
{
    for (unsigned int i = 0; i < PARTS_MOST; i++) {
        if (parts[i].physical && parts[i].array == info->resource.array &&
            parts[i].level == info->subresource.sparseLevel.level &&
            parts[i].x - info->subresource.sparseLevel.offsetX <
                info->subresource.sparseLevel.extentWidth)
            unmap_part(&parts[i]);
    }
}

static CUresult change_parts(const CUarrayMapInfo *list, unsigned int count)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP)
            result = map_part(&list[i]);
        else
            unmap_parts(&list[i]);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void (*fake_before_map)(CUstream stream);

static CUresult map_arrays(const CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    if (fake_before_map)
        fake_before_map(stream);
    return change_parts(list, count);
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    ENTER();
    return map_arrays(list, count, stream);
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    ENTER();
    return map_arrays(list, count, stream);
}

void fake_unmap_array(const void *array)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < PARTS_MOST; i++) {
        if (parts[i].physical && parts[i].array == array)
            unmap_part(&parts[i]);
    }
    pthread_mutex_unlock(&lock);
}

void fake_unmap_arrays_of(CUcontext context)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < PARTS_MOST; i++) {
        if (parts[i].physical && parts[i].context == context)
            unmap_part(&parts[i]);
    }
    pthread_mutex_unlock(&lock);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    CUdeviceptr at = (uintptr_t)address;
    unsigned int i = 0;

    ENTER_MAPPING();
    pthread_mutex_lock(&lock);
    while (i < MAPPED_MOST && (at < mapped[i].at || at >= mapped[i].at + mapped[i].bytes))
        i++;
    if (i < MAPPED_MOST) {
        mapped[i].physical->references++;
        *handle = (uintptr_t)mapped[i].physical;
    }
    pthread_mutex_unlock(&lock);
    return i < MAPPED_MOST ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A file for each memory, or, as a driver's device node is, one for all. */
CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    const struct physical *physical = (struct physical *)(uintptr_t)handle;
    struct exported of;
    int fd;

    ENTER_MAPPING();
    (void)flags;
    if (!shareable || !physical || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    of = (struct exported){
        .bytes = physical->bytes, .device = physical->device, .multicast = physical->multicast};
    fd = memfd_create("fake-cuda", MFD_CLOEXEC);
    if (fd < 0 || write(fd, &of, sizeof(of)) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    *(int *)shareable = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os,
                                        CUmemAllocationHandleType type)
{
    struct physical *made;
    struct exported of;

    ENTER_MAPPING();
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pread((int)(intptr_t)os, &of, sizeof(of), 0) != sizeof(of))
        return CUDA_ERROR_INVALID_VALUE;
    made = calloc(1, sizeof(*made));
    *made = (struct physical){.bytes = of.bytes,
                              .fd = -1,
                              .device = of.device,
                              .references = 1,
                              .imported = 1,
                              .multicast = of.multicast};
    *handle = (uintptr_t)made;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *property,
                                                CUmemGenericAllocationHandle handle)
{
    const struct physical *physical = (struct physical *)(uintptr_t)handle;

    ENTER();
    if (!handle || (physical->multicast && !getenv("FAKE_CUDA_MULTICAST_PROPERTIES")))
        return CUDA_ERROR_INVALID_VALUE;
    *property = (CUmemAllocationProp){
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = physical->device}};
    return CUDA_SUCCESS;
}

/* CUmulticastObjectProp. */
struct multicast {
    unsigned int devices;
    size_t bytes;
    unsigned long long handle_types;
    unsigned long long flags;
};

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const struct multicast *of)
{
    struct physical *made;

    ENTER();
    made = calloc(1, sizeof(*made));
    *made = (struct physical){
        .bytes = of->bytes, .fd = -1, .references = 1, .imported = 1, .multicast = 1};
    *handle = (uintptr_t)made;
    return CUDA_SUCCESS;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device)
{
    const struct physical *physical = (struct physical *)(uintptr_t)handle;

    ENTER();
    (void)device;
    return physical && physical->multicast ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct ipc {
    int pid;
    CUdeviceptr dptr;
    uint64_t bytes;
    int device;
};

#define OPENED_MOST 64

/* What this process has opened, which has one address however often. */
static struct opened {
    struct ipc ipc;
    CUdeviceptr at;
    unsigned int times;
} opened[OPENED_MOST];

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr dptr)
{
    struct ipc ipc = {.pid = getpid()};

    ENTER();
    ipc.bytes = fake_size_of(dptr, &ipc.dptr);
    ipc.device = fake_device_at(dptr);
    if (!handle || !ipc.bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = (CUipcMemHandle){0};
    memcpy(handle->reserved, &ipc, sizeof(ipc));
    return CUDA_SUCCESS;
}

/* That of this memory, or one that is free; NULL: there are too many. */
static struct opened *opened_as(const struct ipc *ipc)
{
    struct opened *none = NULL;

    for (unsigned int i = 0; i < OPENED_MOST; i++) {
        if (opened[i].times && opened[i].ipc.pid == ipc->pid && opened[i].ipc.dptr == ipc->dptr)
            return &opened[i];
        if (!opened[i].times && !none)
            none = &opened[i];
    }
    return none;
}

static CUresult open_once_more(CUdeviceptr *dptr, const struct ipc *ipc)
{
    struct opened *as = opened_as(ipc);
    CUresult result = CUDA_SUCCESS;

    if (!as)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!as->times) {
        as->ipc = *ipc;
        result = fake_address(ipc->bytes, ipc->device, &as->at);
    }
    as->times += result == CUDA_SUCCESS;
    *dptr = as->at;
    return result;
}

static CUresult open_handle(CUdeviceptr *dptr, const CUipcMemHandle *handle)
{
    struct ipc ipc;
    CUresult result;

    memcpy(&ipc, handle->reserved, sizeof(ipc));
    if (!dptr || !ipc.bytes)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    result = open_once_more(dptr, &ipc);
    pthread_mutex_unlock(&lock);
    if (fake_in_mapping)
        fake_in_mapping("opened");
    return result;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *dptr, CUipcMemHandle handle, unsigned int flags)
{
    ENTER_MAPPING();
    (void)flags;
    return open_handle(dptr, &handle);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *dptr, CUipcMemHandle handle, unsigned int flags)
{
    ENTER_MAPPING();
    (void)flags;
    return open_handle(dptr, &handle);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    ENTER_MAPPING();
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < OPENED_MOST && result != CUDA_SUCCESS; i++)
        if (opened[i].times && opened[i].at == dptr)
            result = --opened[i].times ? CUDA_SUCCESS : fake_forget(dptr);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuImportExternalMemory(CUexternalMemory *external,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *of)
{
    ENTER();
    if (!external || of->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ||
        fcntl(of->handle.fd, F_GETFD) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    close(of->handle.fd);
    *external = malloc(1);
    return CUDA_SUCCESS;
}

CUresult cuDestroyExternalMemory(CUexternalMemory external)
{
    ENTER();
    if (!external)
        return CUDA_ERROR_INVALID_VALUE;
    free(external);
    return CUDA_SUCCESS;
}
