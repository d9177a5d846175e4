// SPDX-License-Identifier: MIT
/* Memory by address, and arrays. An address that is free is the next to be given out, as a driver
 * may do it. */
#include "fake.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "card.h"
#include "ptx/content.h"
#include "timing.h"

#define BASE   0x200000000000ull
#define STRIDE (1ull << 36)
#define SLOTS  16384

/* @charged: bytes of the card; 0: managed memory may be in the host's */
struct slot {
    uint64_t size;
    uint64_t charged;
    int device;
    bool managed;
    CUcontext context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot slots[SLOTS];
void (*fake_before_free)(void);
unsigned int fake_advice_refused = UINT_MAX;

uint64_t fake_round(uint64_t bytes)
{
    const uint64_t block = 2u << 20;

    return bytes > block / 2 ? (bytes + block - 1) / block * block : bytes;
}

static CUresult add(uint64_t bytes, uint64_t charged, int device, CUdeviceptr *dptr)
{
    unsigned int i = 0;

    pthread_mutex_lock(&lock);
    while (i < SLOTS && slots[i].size)
        i++;
    if (i < SLOTS)
        slots[i] = (struct slot){
            .size = bytes, .charged = charged, .device = device, .context = fake_current()};
    pthread_mutex_unlock(&lock);
    *dptr = BASE + i * STRIDE;
    if (i == SLOTS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (content_add(*dptr, bytes))
        return CUDA_SUCCESS;
    slots[i] = (struct slot){0};
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate(uint64_t bytes, CUdeviceptr *dptr)
{
    uint64_t taken = fake_device() ? 0 : fake_round(bytes);
    CUresult result = capture_unsafe();

    if (result == CUDA_SUCCESS)
        result = timing_error();
    if (result != CUDA_SUCCESS)
        return result;
    if (!fake_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!dptr || !bytes || bytes > STRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!card_take(taken))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = add(bytes, taken, fake_device(), dptr);
    if (result != CUDA_SUCCESS)
        card_give(taken);
    return result;
}

void fake_give(uint64_t bytes)
{
    if (fake_before_free)
        fake_before_free();
    card_give(bytes);
}

static struct slot *slot_of(CUdeviceptr dptr)
{
    uint64_t index = (dptr - BASE) / STRIDE;

    return dptr >= BASE && index < SLOTS && slots[index].size ? &slots[index] : NULL;
}

static CUresult release(CUdeviceptr dptr)
{
    struct slot *slot = slot_of(dptr);
    uint64_t charged;

    if (!dptr)
        return CUDA_SUCCESS;
    if (!slot || (dptr - BASE) % STRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    charged = slot->charged;
    /* No longer the program's, and not yet the card's. */
    if (charged)
        fake_give(charged);
    content_remove(dptr);
    pthread_mutex_lock(&lock);
    *slot = (struct slot){0};
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult fake_alloc(uint64_t bytes, CUdeviceptr *dptr)
{
    return allocate(bytes, dptr);
}

CUresult fake_free(CUdeviceptr dptr)
{
    return release(dptr);
}

CUresult fake_address(uint64_t bytes, int device, CUdeviceptr *dptr)
{
    return add(bytes, 0, device, dptr);
}

void fake_keep(CUdeviceptr dptr)
{
    if (slot_of(dptr))
        slot_of(dptr)->context = NULL;
}

int fake_device_at(CUdeviceptr dptr)
{
    const struct slot *slot = slot_of(dptr);

    return slot ? slot->device : 0;
}

CUresult fake_forget(CUdeviceptr dptr)
{
    return release(dptr);
}

uint64_t fake_size_of(CUdeviceptr dptr, CUdeviceptr *base)
{
    struct slot *slot = slot_of(dptr);

    if (!slot || (dptr - BASE) % STRIDE >= slot->size)
        return 0;
    *base = BASE + (dptr - BASE) / STRIDE * STRIDE;
    return slot->size;
}

void fake_free_context(CUcontext context)
{
    for (unsigned int i = 0; i < SLOTS; i++) {
        if (slots[i].size && slots[i].context == context)
            release(BASE + i * STRIDE);
    }
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
    ENTER();
    return allocate(bytes, dptr);
}

/* Of 32 bits: an address that fits would be one of few. */
CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytes)
{
    CUdeviceptr wide;
    CUresult result;

    ENTER();
    result = allocate(bytes, &wide);
    if (result == CUDA_SUCCESS)
        *dptr = (CUdeviceptr_v1)((wide - BASE) / STRIDE + 1);
    return result;
}

CUresult cuMemFree(CUdeviceptr_v1 dptr)
{
    ENTER();
    return dptr ? release(BASE + (dptr - 1) * STRIDE) : CUDA_SUCCESS;
}

/* The driver waits for the card before it frees memory. */
CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    CUresult result;

    ENTER();
    result = capture_unsafe();
    if (result == CUDA_SUCCESS)
        result = timing_await_context(dptr ? fake_current() : NULL);
    return result == CUDA_SUCCESS ? fake_free_any(dptr) : result;
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytes, unsigned int flags)
{
    CUresult result;

    ENTER();
    (void)flags;
    result = allocate(bytes, dptr);
    if (result != CUDA_SUCCESS)
        return result;
    slot_of(*dptr)->managed = true;
    if (content_share(*dptr))
        return CUDA_SUCCESS;
    release(*dptr);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Memory that prefers the host's leaves the card. */
CUresult cuMemAdvise(CUdeviceptr at, size_t bytes, CUmem_advise advice, CUdevice device)
{
    struct slot *slot = slot_of(at);

    ENTER();
    (void)bytes;
    if (!slot || !slot->managed || advice == fake_advice_refused)
        return CUDA_ERROR_INVALID_VALUE;
    if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION && device == CU_DEVICE_CPU) {
        card_give(slot->charged);
        slot->charged = 0;
    }
    return CUDA_SUCCESS;
}

/* As a driver that isn't linked -Bsymbolic calls its own exports: through the door. */
static CUresult alloc_by_export(CUdeviceptr *dptr, size_t bytes)
{
    CUresult (*function)(CUdeviceptr *, size_t) = NULL;

    *(void **)&function = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    return (function ? function : cuMemAlloc_v2)(dptr, bytes);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
    ENTER();
    (void)element;
    if (!dptr || !pitch || !width || !height)
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + 1023) / 1024 * 1024;
    return alloc_by_export(dptr, *pitch * height);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pitch, unsigned int width,
                         unsigned int height, unsigned int element)
{
    ENTER();
    (void)element;
    if (!dptr || !pitch || !width || !height)
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + 1023) / 1024 * 1024;
    return cuMemAlloc(dptr, *pitch * height);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr dptr)
{
    uint64_t bytes;
    CUdeviceptr from = 0;
    int device;

    ENTER();
    bytes = fake_size_of(dptr, &from);
    bytes = bytes ? bytes : fake_mapped_at(dptr, &from, &device);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (base)
        *base = from;
    if (size)
        *size = bytes;
    return CUDA_SUCCESS;
}

/* The last host memory that was locked. */
static uintptr_t locked_at, locked_bytes;

CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned int flags)
{
    ENTER();
    (void)flags;
    locked_at = (uintptr_t)at;
    locked_bytes = bytes;
    if (content_is_on())
        content_lock(at, bytes);
    return CUDA_SUCCESS;
}

/* False: it does not know that of the memory, or the memory. */
static bool tell(void *data, CUpointer_attribute attribute, CUdeviceptr at)
{
    CUdeviceptr base;
    uint64_t bytes = fake_size_of(at, &base);
    int device = fake_device_at(at);
    bool is_device;

    bytes = bytes ? bytes : fake_mapped_at(at, &base, &device);
    is_device = bytes;

    if (!is_device && at - locked_at >= locked_bytes)
        return false;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)data = is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned int *)data = slot_of(at) && slot_of(at)->managed;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = device;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(uint64_t *)data = is_device ? base : locked_at;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(uint64_t *)data = is_device ? bytes : locked_bytes;
        return true;
    default:
        return is_device && pointer_attribute(data, attribute, at);
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr at)
{
    ENTER();
    return tell(data, attribute, at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Of memory that it does not know, all are 0. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr at)
{
    ENTER();
    if (count && (!attributes || !data))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++)
        if (!tell(data[i], attributes[i], at))
            *(unsigned int *)data[i] = 0;
    return CUDA_SUCCESS;
}

struct array {
    uint64_t bytes;
    bool deferred;
    CUDA_ARRAY3D_DESCRIPTOR of;
};

/* In tiles of 64 bytes in 8 rows. */
static uint64_t tiled(uint64_t row, uint64_t rows, uint64_t depth)
{
    return (row + 63) / 64 * 64 * ((rows + 7) / 8 * 8) * depth;
}

static uint64_t some(uint64_t count)
{
    return count ? count : 1;
}

/* Of an element with all its channels: formats of 2022 and later. */
/* clang-format off */
static const unsigned char bits_of_format[256] = {
    /* Blocks: BC1 and BC4 have half of the others'. */
    [0x91] = 4, [0x92] = 4, [0x93] = 8, [0x94] = 8, [0x95] = 8, [0x96] = 8, [0x97] = 4,
    [0x98] = 4, [0x99] = 8, [0x9a] = 8, [0x9b] = 8, [0x9c] = 8, [0x9d] = 8, [0x9e] = 8,
    /* Light, and colours. */
    [0xb0] = 12, [0x9f] = 24, [0xa1] = 24, [0xa2] = 16, [0xa3] = 32, [0xa4] = 32, [0xa5] = 16,
    [0xa6] = 32, [0xa7] = 32, [0xa8] = 32, [0xa9] = 32, [0xb1] = 64, [0xb2] = 24, [0xb3] = 48,
    [0xb4] = 24, [0xb5] = 48, [0x50] = 32, [0x51] = 16, [0x52] = 32, [0x53] = 12, [0x54] = 24,
    [0x55] = 16, [0x56] = 32, [0x57] = 24, [0x58] = 48, [0x59] = 12, [0x5a] = 24, [0x5b] = 16,
    [0x5c] = 32, [0x5d] = 24, [0x5e] = 48,
    /* With their channels. */
    [0xc0] = 8, [0xc1] = 16, [0xc2] = 32, [0xc3] = 16, [0xc4] = 32, [0xc5] = 64, [0xc6] = 8,
    [0xc7] = 16, [0xc8] = 32, [0xc9] = 16, [0xca] = 32, [0xcb] = 64,
};
/* clang-format on */

/* Of an element with all its channels. */
static unsigned int bits_of(unsigned int format, unsigned int channels)
{
    if (format < 256 && bits_of_format[format])
        return bits_of_format[format];
    return channels * ((format & 7) == 1 ? 8 : (format & 7) == 2 || format == 0x10 ? 16 : 32);
}

static CUresult make_array(struct array **made, const CUDA_ARRAY3D_DESCRIPTOR *of,
                           unsigned int levels)
{
    uint64_t bits = bits_of(of->Format, of->NumChannels);
    bool is_layered = of->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    struct array *array;
    uint64_t bytes = 0;

    if (!fake_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!made || !of->Width || !of->NumChannels)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < levels; i++)
        bytes += tiled((some(of->Width >> i) * bits + 7) / 8, some(of->Height >> i),
                       some(is_layered ? of->Depth : of->Depth >> i));
    bytes = fake_round(bytes);
    if (of->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        bytes = 0;
    if (!card_take(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    array = malloc(sizeof(*array));
    array->bytes = bytes;
    array->deferred = of->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING;
    array->of = *of;
    *made = array;
    return CUDA_SUCCESS;
}

#define WIDE(...) (&(CUDA_ARRAY3D_DESCRIPTOR){__VA_ARGS__})

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *of)
{
    ENTER();
    return make_array((struct array **)array,
                      WIDE(of->Width, of->Height, 0, of->Format, of->NumChannels, 0), 1);
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *of)
{
    ENTER();
    return make_array((struct array **)array,
                      WIDE(of->Width, of->Height, 0, of->Format, of->NumChannels, 0), 1);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *of)
{
    ENTER();
    return make_array((struct array **)array, of, 1);
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *of)
{
    ENTER();
    return make_array(
        (struct array **)array,
        WIDE(of->Width, of->Height, of->Depth, of->Format, of->NumChannels, of->Flags), 1);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *of,
                                unsigned int levels)
{
    ENTER();
    return make_array((struct array **)array, of, levels);
}

static CUresult destroy_array(struct array *array)
{
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    fake_unmap_array(array);
    fake_give(array->bytes);
    free(array);
    return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array)
{
    ENTER();
    return destroy_array((struct array *)array);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    ENTER();
    return destroy_array((struct array *)array);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *to, CUarray array)
{
    ENTER();
    if (!array || !to)
        return CUDA_ERROR_INVALID_VALUE;
    *to = ((struct array *)array)->of;
    return CUDA_SUCCESS;
}

/* As documented: only of an array that has no memory yet. */
static CUresult requirements_of(const struct array *array,
                                CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements)
{
    if (!array || !array->deferred)
        return CUDA_ERROR_INVALID_VALUE;
    *requirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = 1 << 20};
    return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array,
                                      CUdevice device)
{
    ENTER();
    (void)device;
    return requirements_of((struct array *)array, requirements);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements,
                                               CUmipmappedArray array, CUdevice device)
{
    ENTER();
    (void)device;
    return requirements_of((struct array *)array, requirements);
}
