// SPDX-License-Identifier: MIT
/* What programs ask of a device and of functions: numbers like an H200's. */
#include "fake.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "card.h"
#include "ptx/content.h"

int fake_concurrent_managed = 1;

/* By the numbers of cuda.h. What is left out is 0. */
static const int attributes[] = {
    /* Threads, blocks and grids; memory of a block; constants. */
    [1] = 1024,
    [2] = 1024,
    [3] = 1024,
    [4] = 64,
    [5] = 2147483647,
    [6] = 65535,
    [7] = 65535,
    [8] = 49152,
    [9] = 65536,
    [10] = 32,
    [11] = 2147483647,
    [12] = 65536,
    [13] = 1980000,
    /* Alignment, multiprocessors, host memory. */
    [14] = 512,
    [15] = 1,
    [16] = 132,
    [19] = 1,
    /* Textures. */
    [21] = 131072,
    [22] = 131072,
    [23] = 65536,
    [24] = 16384,
    [25] = 16384,
    [26] = 16384,
    [27] = 32768,
    [28] = 32768,
    [29] = 2048,
    [30] = 512,
    /* At the same time; errors are corrected; clocks, bus, cache. */
    [31] = 1,
    [32] = 1,
    [36] = 3201000,
    [37] = 6144,
    [38] = 62914560,
    [39] = 2048,
    [40] = 2,
    [41] = 1,
    /* More textures, and surfaces. */
    [42] = 32768,
    [43] = 2048,
    [44] = 1,
    [45] = 32768,
    [46] = 32768,
    [47] = 8192,
    [48] = 8192,
    [49] = 32768,
    [51] = 32,
    [52] = 32768,
    [53] = 32768,
    [54] = 2046,
    [55] = 32768,
    [56] = 131072,
    [57] = 65536,
    [58] = 16384,
    [59] = 16384,
    [60] = 16384,
    [61] = 32768,
    [62] = 2048,
    [63] = 32768,
    [64] = 32768,
    [65] = 2048,
    [66] = 32768,
    [67] = 32768,
    [68] = 2046,
    [69] = 268435456,
    [70] = 131072,
    [71] = 65000,
    [72] = 2097120,
    [73] = 32768,
    [74] = 32768,
    [77] = 32768,
    /* Priorities, caches, what a multiprocessor has, managed memory. */
    [78] = 1,
    [79] = 1,
    [80] = 1,
    [81] = 233472,
    [82] = 65536,
    [83] = 1,
    [87] = 2,
    [90] = 1,
    /* Host pointers, operations of streams on memory, cooperation. */
    [91] = 1,
    [92] = 1,
    [93] = 1,
    [94] = 1,
    [95] = 1,
    [97] = 232448,
    [99] = 1,
    /* Mapped memory, descriptors, blocks, caches, sparse arrays. */
    [102] = 1,
    [103] = 1,
    [106] = 32,
    [107] = 1,
    [108] = 39321600,
    [109] = 134217728,
    [111] = 1024,
    [112] = 1,
    [113] = 1,
    [114] = 1,
    [115] = 1,
    [116] = 1,
    [117] = 1,
    [118] = 100,
    [119] = 1,
    [120] = 1,
    [121] = 1,
    [122] = 1,
    [123] = 1,
    [124] = 1,
    [125] = 1,
    [126] = 4,
    [127] = 1,
    [132] = 1,
    [134] = 0,
};

enum {
    PCI_BUS = 33,
    MAJOR = 75,
    MINOR = 76,
    PAGEABLE_MEMORY_ACCESS = 88,
    SHARED_OF_BLOCK = 8,
    MULTIPROCESSORS = 16,
    THREADS_OF_BLOCK = 1,
    THREADS_OF_MULTIPROCESSOR = 39,
    BLOCKS_OF_MULTIPROCESSOR = 106,
};

static int capability(void)
{
    return (int)card_setting("FAKE_CUDA_CAPABILITY", 100);
}

/*
 * What the kernel's module says once the driver has begun with this process: flag 1 keeps a GPU out
 * that would reach its memory by HMM, and nothing one that would by ATS.
 */
static int reaches_host_memory(void)
{
    struct {
        uint64_t flags;
        uint32_t status;
    } begin = {0};
    uint64_t way = card_setting("FAKE_CUDA_HOST_MEMORY", 0);

    if (way == 1)
        ioctl(-1, 0x30000001ul, &begin);
    return way == 2 || (way == 1 && !(begin.flags & 1));
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    unsigned int which = (unsigned int)attribute;

    ENTER();
    if (!value || !which || which >= sizeof(attributes) / sizeof(attributes[0]))
        return CUDA_ERROR_INVALID_VALUE;
    if (!fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = which == PCI_BUS                                             ? 0x3b + device
             : which == MAJOR                                             ? capability() / 10
             : which == MINOR                                             ? capability() % 10
             : which == PAGEABLE_MEMORY_ACCESS                            ? reaches_host_memory()
             : attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS ? fake_concurrent_managed
                                                                          : attributes[which];
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    ENTER();
    if (!major || !minor || !fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = capability() / 10;
    *minor = capability() % 10;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    ENTER();
    if (!name || !fake_exists(device) || length < 1)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "Fake");
    return CUDA_SUCCESS;
}

/* As its NVML prints it. */
static CUresult uuid_of(unsigned char *uuid, CUdevice device)
{
    if (!uuid || !fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid, 0, 16);
    uuid[0] = (unsigned char)(0x3b + device);
    uuid[6] = 0x40;
    uuid[8] = 0x80;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(unsigned char *uuid, CUdevice device)
{
    ENTER();
    return uuid_of(uuid, device);
}

CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device)
{
    ENTER();
    return uuid_of(uuid, device);
}

static const struct {
    unsigned int error;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {718, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
};

/* NULL: it is no error. */
static CUresult say(CUresult error, const char **text, bool name)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (unsigned int i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].error == (unsigned int)error)
            *text = name ? errors[i].name : errors[i].text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    ENTER();
    return say(error, text, true);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    ENTER();
    return say(error, text, false);
}

/* Of a function: threads of a block, registers, the versions it was made for. */
static CUresult function_attribute(int *value, unsigned int attribute, const void *function)
{
    static const int of_function[] = {[0] = 1024, [4] = 32, [8] = 49152};

    if (!value || attribute > 16)
        return CUDA_ERROR_INVALID_VALUE;
    if (image_attribute(function, attribute, value))
        return CUDA_SUCCESS;
    *value = attribute == 5 || attribute == 6                           ? capability()
             : attribute < sizeof(of_function) / sizeof(of_function[0]) ? of_function[attribute]
                                                                        : 0;
    return CUDA_SUCCESS;
}

/* The last one that was set. */
static struct {
    CUfunction function;
    unsigned int attribute;
    int value;
} set;

CUresult cuFuncSetAttribute(CUfunction function, unsigned int attribute, int value)
{
    ENTER();
    set.function = function;
    set.attribute = attribute;
    set.value = value;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, unsigned int attribute, CUfunction function)
{
    ENTER();
    if (!value || function != set.function || attribute != set.attribute)
        return function_attribute(value, attribute, function);
    *value = set.value;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, unsigned int attribute, void *kernel, CUdevice device)
{
    ENTER();
    (void)device;
    return function_attribute(value, attribute, kernel);
}

/* Functions that are numbers have no parameters: a list of them ends at once. */
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
    ENTER();
    return image_parameter(function, index, offset, size);
}

CUresult cuKernelGetParamInfo(void *kernel, size_t index, size_t *offset, size_t *size)
{
    ENTER();
    return image_parameter(kernel, index, offset, size);
}

static CUresult blocks(int *count, int threads, size_t shared)
{
    int most = attributes[BLOCKS_OF_MULTIPROCESSOR];
    int by_threads;

    if (!count || threads < 1 || threads > attributes[THREADS_OF_BLOCK])
        return CUDA_ERROR_INVALID_VALUE;
    by_threads = attributes[THREADS_OF_MULTIPROCESSOR] / threads;
    *count = by_threads < most ? by_threads : most;
    if (shared > (size_t)attributes[SHARED_OF_BLOCK])
        *count = 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int threads,
                                                     size_t shared)
{
    ENTER();
    (void)function;
    return blocks(count, threads, shared);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction function,
                                                              int threads, size_t shared,
                                                              unsigned int flags)
{
    ENTER();
    (void)function;
    (void)flags;
    return blocks(count, threads, shared);
}

static CUresult block_size(int *grid, int *threads, int limit)
{
    if (!grid || !threads)
        return CUDA_ERROR_INVALID_VALUE;
    *threads =
        limit > 0 && limit < attributes[THREADS_OF_BLOCK] ? limit : attributes[THREADS_OF_BLOCK];
    *grid = attributes[MULTIPROCESSORS] * (attributes[THREADS_OF_MULTIPROCESSOR] / *threads);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *threads, CUfunction function,
                                          void *shared_of, size_t shared, int limit)
{
    ENTER();
    (void)function;
    (void)shared_of;
    (void)shared;
    return block_size(grid, threads, limit);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *threads, CUfunction function,
                                                   void *shared_of, size_t shared, int limit,
                                                   unsigned int flags)
{
    ENTER();
    (void)function;
    (void)shared_of;
    (void)shared;
    (void)flags;
    return block_size(grid, threads, limit);
}
