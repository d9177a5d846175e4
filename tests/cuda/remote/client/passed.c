// SPDX-License-Identifier: MIT
/* Calls that the fake card only takes down: what was given to them is what came there. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../compute_ptx.h"

/* The last call of this name; -1: it was not called. */
static long read_note(const char *name, unsigned long *words)
{
    FILE *file = fopen(getenv("FAKE_CUDA_NOTES"), "re");
    char line[1024], is_called[128];
    long count = -1;
    int at, more;

    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%127s%n", is_called, &at) != 1 || strcmp(is_called, name))
            continue;
        for (count = 0; count < 16 && sscanf(line + at, "%lx%n", &words[count], &more) == 1;
             count++)
            at += more;
    }
    if (file)
        fclose(file);
    return count;
}

/* @at: which argument; the last call of @name had @value there. */
static void expect_passed(const char *name, unsigned int at, uint64_t value)
{
    unsigned long words[16];
    long count = read_note(name, words);

    if (count > (long)at && words[at] == value)
        return;
    fprintf(stderr, "%s: argument %u: %lx, not %lx\n", name, at, count > 0 ? words[at] : 0,
            (unsigned long)value);
    exit(1);
}

struct multicast {
    unsigned int devices;
    size_t bytes;
    uint64_t kinds, flags;
};

typedef struct CUmulticast_st *Multicast;

CUresult cuMulticastCreate(Multicast *made, const struct multicast *of);
CUresult cuMulticastGetGranularity(size_t *to, const struct multicast *of, unsigned int option);
CUresult cuMulticastAddDevice(Multicast multicast, CUdevice device);
CUresult cuMulticastBindMem(Multicast multicast, size_t offset, Multicast memory,
                            size_t memory_offset, size_t bytes, unsigned long long flags);
CUresult cuMulticastBindMem_v2(Multicast multicast, CUdevice device, size_t offset,
                               Multicast memory, size_t memory_offset, size_t bytes,
                               unsigned long long flags);
CUresult cuMulticastBindAddr(Multicast multicast, size_t offset, CUdeviceptr at, size_t bytes,
                             unsigned long long flags);
CUresult cuMulticastBindAddr_v2(Multicast multicast, CUdevice device, size_t offset, CUdeviceptr at,
                                size_t bytes, unsigned long long flags);
CUresult cuMulticastUnbind(Multicast multicast, CUdevice device, size_t offset, size_t bytes);

/* No object of multicast comes from the fake card: NULL and what is none must do. */
static void pass_multicast(void)
{
    struct multicast of = {.devices = 1, .bytes = 1 << 21};
    Multicast wrong = (Multicast)0x1234;
    size_t granularity = 0x55;

    ok(cuMulticastGetGranularity(&granularity, &of, 1));
    must(!granularity);
    expect_passed("cuMulticastGetGranularity", 2, 1);
    is(cuMulticastCreate(NULL, &of), CUDA_ERROR_INVALID_VALUE);
    is(cuMulticastCreate(&wrong, NULL), CUDA_ERROR_INVALID_VALUE);
    ok(cuMulticastBindMem(NULL, 0x1111, NULL, 0x2222, 0x3333, 4));
    expect_passed("cuMulticastBindMem", 1, 0x1111);
    expect_passed("cuMulticastBindMem", 3, 0x2222);
    expect_passed("cuMulticastBindMem", 5, 4);
    ok(cuMulticastBindMem_v2(NULL, 0, 0x1111, NULL, 0x2222, 0x3333, 4));
    expect_passed("cuMulticastBindMem_v2", 5, 0x3333);
    is(cuMulticastBindMem((Multicast)0x1234, 0, NULL, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuMulticastBindAddr(NULL, 0x1111, 0x7f0011112222, 0x3333, 4));
    expect_passed("cuMulticastBindAddr", 2, 0x7f0011112222);
    ok(cuMulticastBindAddr_v2(NULL, 0, 0x1111, 0x7f0011112222, 0x3333, 4));
    expect_passed("cuMulticastBindAddr_v2", 3, 0x7f0011112222);
    ok(cuMulticastUnbind(NULL, 0, 0x1111, 0x2222));
    expect_passed("cuMulticastUnbind", 3, 0x2222);
    is(cuMulticastAddDevice((Multicast)0x1234, 0), CUDA_ERROR_INVALID_VALUE);
}

CUresult cuLogsCurrent(unsigned int *iterator, unsigned int flags);
CUresult cuLogsDumpToMemory(unsigned int *iterator, char *buffer, size_t *size, unsigned int flags);
CUresult cuLogsDumpToFile(unsigned int *iterator, const char *path, unsigned int flags);

static void pass_logs(void)
{
    char path[] = "/tmp/vgpu-log-XXXXXX", text[100];
    int fd = mkstemp(path);
    unsigned int iterator = 0x55;
    size_t bytes = sizeof(text);

    must(fd >= 0 && write(fd, text, sizeof(text)) == sizeof(text));
    ok(cuLogsCurrent(&iterator, 0));
    must(!iterator);
    iterator = 0x77;
    memset(text, 0x55, sizeof(text));
    ok(cuLogsDumpToMemory(&iterator, text, &bytes, 0));
    must(!text[0] && !text[99] && iterator == 0x77 && bytes == sizeof(text));
    bytes = sizeof(text);
    ok(cuLogsDumpToMemory(NULL, text, &bytes, 3));
    expect_passed("cuLogsDumpToMemory", 0, 0);
    expect_passed("cuLogsDumpToMemory", 3, 3);
    is(cuLogsDumpToMemory(&iterator, text, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    bytes = SIZE_MAX / 2;
    is(cuLogsDumpToMemory(&iterator, text, &bytes, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuLogsDumpToFile(&iterator, path, 0));
    must(lseek(fd, 0, SEEK_END) == 0);
    is(cuLogsDumpToFile(&iterator, "/nonexistent/log", 0), CUDA_ERROR_INVALID_VALUE);
    is(cuLogsDumpToFile(&iterator, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    unlink(path);
}

struct unpack {
    size_t from_bytes, to_bytes;
    CUdeviceptr written, from, to;
    unsigned int how;
    uint8_t padding[20];
};

CUresult cuMemBatchDecompressAsync(struct unpack *list, size_t count, unsigned int flags,
                                   size_t *failed, CUstream stream);
CUresult cuMemBatchDecompressAsync_ptsz(struct unpack *list, size_t count, unsigned int flags,
                                        size_t *failed, CUstream stream);

/* All three addresses must be the driver's, with all their bytes. */
static void pass_unpacking(void)
{
    CUdeviceptr at = allocate_device(4096);
    const struct unpack right = {1024, 2048, at + 4092, at, at + 2048, 2, {0}};
    struct unpack list[] = {right, right};
    size_t failed = 0x55;

    ok(cuMemBatchDecompressAsync(list, 2, 5, &failed, NULL));
    must(!failed);
    expect_passed("cuMemBatchDecompressAsync", 1, 2);
    expect_passed("cuMemBatchDecompressAsync", 2, 5);
    ok(cuMemBatchDecompressAsync_ptsz(list, 1, 0, NULL, NULL));
    list[1].to_bytes = 2049;
    is(cuMemBatchDecompressAsync(list, 2, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    list[1] = right;
    list[1].from = 0x7f0000000000;
    is(cuMemBatchDecompressAsync(list, 2, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    list[1] = right;
    list[1].written = at + 4093;
    is(cuMemBatchDecompressAsync(list, 2, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    is(cuMemBatchDecompressAsync(NULL, 2, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

CUresult cuFlushGPUDirectRDMAWrites(unsigned int target, unsigned int scope);
CUresult cuDeviceGetFabricClusterUuid(uint8_t *to, CUdevice device);
CUresult cuLibraryGetUnifiedFunction(void **to, void *library, const char *name);
CUresult cuLibraryLoadData(void **library, const void *image, unsigned int *ids, void **values,
                           unsigned int count, unsigned int *library_ids, void **library_values,
                           unsigned int library_count);

static void pass_facts(void)
{
    uint8_t uuid[16];
    void *function = uuid, *library;

    ok(cuFlushGPUDirectRDMAWrites(0, 200));
    expect_passed("cuFlushGPUDirectRDMAWrites", 1, 200);
    memset(uuid, 0x55, sizeof(uuid));
    ok(cuDeviceGetFabricClusterUuid(uuid, 0));
    must(!uuid[15]);
    is(cuDeviceGetFabricClusterUuid(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuLibraryLoadData(&library, compute_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryGetUnifiedFunction(&function, library, "axpy"));
    must(!function);
    is(cuLibraryGetUnifiedFunction(&function, library, NULL), CUDA_ERROR_INVALID_VALUE);
    is(cuLibraryGetUnifiedFunction(&function, uuid, "axpy"), CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuOccupancyMaxActiveClusters(int *to, CUfunction function, const CUlaunchConfig *config);
CUresult cuOccupancyMaxPotentialClusterSize(int *to, CUfunction function,
                                            const CUlaunchConfig *config);

/* What the fake card writes is 0; that it is a launch's form is checked before. */
static void pass_occupancy(void)
{
    struct {
        uint64_t id, value[8];
    } attribute = {.id = 4, .value = {2}};
    CUlaunchConfig config = {.gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32};
    CUfunction function;
    CUmodule module;
    int told = 0x55;

    function = load_function(&module, "axpy");
    config.attrs = (CUlaunchAttribute *)&attribute;
    config.numAttrs = 1;
    ok(cuOccupancyMaxActiveClusters(&told, function, &config));
    must(!told);
    told = 0x55;
    ok(cuOccupancyMaxPotentialClusterSize(&told, function, &config));
    must(!told);
    is(cuOccupancyMaxActiveClusters(NULL, function, &config), CUDA_ERROR_INVALID_VALUE);
    is(cuOccupancyMaxActiveClusters(&told, function, NULL), CUDA_ERROR_INVALID_VALUE);
    is(cuOccupancyMaxActiveClusters(&told, NULL, &config), CUDA_ERROR_INVALID_HANDLE);
    config.hStream = (CUstream)&config;
    is(cuOccupancyMaxActiveClusters(&told, function, &config), CUDA_ERROR_INVALID_HANDLE);
    config.numAttrs = 65;
    is(cuOccupancyMaxActiveClusters(&told, function, &config), CUDA_ERROR_INVALID_VALUE);
}

CUresult cuCoredumpGetAttribute(unsigned int setting, void *to, size_t *bytes);
CUresult cuCoredumpGetAttributeGlobal(unsigned int setting, void *to, size_t *bytes);
CUresult cuCoredumpSetAttribute(unsigned int setting, const void *to, const size_t *bytes);
CUresult cuCoredumpSetAttributeGlobal(unsigned int setting, const void *to, const size_t *bytes);

/* Nothing of it reaches the worker, which makes no files. */
static void ask_for_dumps(void)
{
    unsigned char is_on = 0x55, on = 1;
    char name[1024];
    size_t bytes = sizeof(is_on), room = sizeof(name), flags_bytes = sizeof(int);
    int flags = 0x55;

    ok(cuCoredumpGetAttribute(1, &is_on, &bytes));
    must(!is_on && bytes == 1);
    ok(cuCoredumpGetAttributeGlobal(7, &flags, &flags_bytes));
    must(!flags);
    ok(cuCoredumpGetAttribute(5, name, &room));
    must(!strncmp(name, "core.cuda.", 10) && room == strlen(name) + 1);
    room = 3;
    is(cuCoredumpGetAttribute(5, name, &room), CUDA_ERROR_INVALID_VALUE);
    is(cuCoredumpGetAttribute(8, name, &room), CUDA_ERROR_INVALID_VALUE);
    ok(cuCoredumpSetAttribute(1, &is_on, &bytes));
    is(cuCoredumpSetAttributeGlobal(1, &on, &bytes), CUDA_ERROR_NOT_SUPPORTED);
    is(cuCoredumpSetAttribute(5, "/tmp/core", &room), CUDA_ERROR_NOT_SUPPORTED);
    is(cuCoredumpSetAttribute(1, NULL, &bytes), CUDA_ERROR_INVALID_VALUE);
}

void check_passed_calls(void)
{
    begin_context();
    pass_multicast();
    pass_logs();
    pass_unpacking();
    pass_facts();
    pass_occupancy();
    ask_for_dumps();
}
