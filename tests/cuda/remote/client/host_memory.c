// SPDX-License-Identifier: MIT
/* The program's memory: what it registers, and advice on pages that both ends have. */
#include "client.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

CUresult cuDeviceGetAttribute(int *to, unsigned int attribute, CUdevice device);
CUresult cuMemHostRegister(void *at, size_t bytes, unsigned int flags);
CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *at);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *to, void *at, unsigned int flags);
CUresult cuMemAdvise(CUdeviceptr at, size_t bytes, unsigned int advice, CUdevice device);
CUresult cuMemAdvise_v2(CUdeviceptr at, size_t bytes, unsigned int advice, uint64_t where);
CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t bytes, uint64_t where, unsigned int flags,
                               CUstream stream);
CUresult cuMemRangeGetAttributes(void **data, size_t *bytes, unsigned int *attributes,
                                 size_t attributes_count, CUdeviceptr at, size_t count);

/* It is copied from and to as ever; what would let the GPU reach it is refused. */
static void register_own_memory(void)
{
    static uint8_t own[8192], got[8192];
    CUdeviceptr at = allocate_device(sizeof(own));
    int is_supported = 1, warp = 0;
    void *pinned;

    ok(cuDeviceGetAttribute(&is_supported, 99, 0));
    ok(cuDeviceGetAttribute(&warp, 10, 0));
    must(!is_supported && warp == 32);
    is(cuDeviceGetAttribute(NULL, 10, 0), CUDA_ERROR_INVALID_VALUE);
    memset(own, 0x5a, sizeof(own));
    ok(cuMemHostRegister(own, sizeof(own), 0));
    is(cuMemHostRegister_v2(own + 4096, 16, 1), 712);
    ok(cuMemcpyHtoD_v2(at, own, sizeof(own)));
    ok(cuMemcpyDtoH_v2(got, at, sizeof(got)));
    must(!memcmp(own, got, sizeof(own)));
    is(cuMemHostGetDevicePointer_v2(&at, own, 0), CUDA_ERROR_INVALID_VALUE);
    is(cuMemHostUnregister(own + 1), 713);
    ok(cuMemHostUnregister(own));
    is(cuMemHostUnregister(own), 713);
    ok(cuMemHostRegister_v2(own + 4096, 16, 1));
    ok(cuMemHostUnregister(own + 4096));
    is(cuMemHostRegister_v2(own, sizeof(own), 2), CUDA_ERROR_NOT_SUPPORTED);
    is(cuMemHostRegister_v2(own, SIZE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    is(cuMemHostRegister_v2(NULL, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemHostAlloc(&pinned, 4096, 0));
    is(cuMemHostRegister_v2(pinned, 4096, 0), 712);
}

/* Managed memory takes advice; what is no such memory is the driver's to judge. */
static void advise_and_ask(void)
{
    unsigned int attributes[] = {1, 2};
    uint32_t first = 7, second = 7;
    void *data[] = {&first, &second};
    size_t bytes[] = {sizeof(first), sizeof(second)};
    CUdeviceptr at;

    ok(cuMemAllocManaged(&at, 65536, 1));
    ok(cuMemAdvise(at, 65536, 1, 0));
    ok(cuMemAdvise_v2(at, 65536, 1, 1));
    ok(cuMemPrefetchAsync(at, 65536, 0, NULL));
    ok(cuMemPrefetchAsync_v2(at, 65536, 1, 0, NULL));
    ok(cuMemRangeGetAttributes(data, bytes, attributes, 2, at, 65536));
    must(!first && !second);
    is(cuMemRangeGetAttributes(data, bytes, attributes, 0, at, 65536), CUDA_ERROR_INVALID_VALUE);
    is(cuMemRangeGetAttributes(NULL, bytes, attributes, 2, at, 65536), CUDA_ERROR_INVALID_VALUE);
}

void check_host_memory(void)
{
    begin_context();
    register_own_memory();
    advise_and_ask();
}

static void rest(void *data)
{
    (void)data;
    usleep(50000);
}

/* A program that has as many files open as it may gets no memory that both ends have, and computes
 * on. */
void check_without_files(void)
{
    struct rlimit most, none;
    CUstream stream;
    void *before, *pinned;

    begin_context();
    ok(cuStreamCreate(&stream, 0));
    ok(cuLaunchHostFunc(stream, rest, NULL));
    ok(cuStreamSynchronize(stream));
    ok(cuMemHostAlloc(&before, 4096, 0));
    must(getrlimit(RLIMIT_NOFILE, &most) == 0);
    none = most;
    none.rlim_cur = (rlim_t)open("/dev/null", O_RDONLY | O_CLOEXEC) + 1;
    must(setrlimit(RLIMIT_NOFILE, &none) == 0);
    is(cuMemHostAlloc(&pinned, 4096, 0), CUDA_ERROR_OUT_OF_MEMORY);
    ok(cuLaunchHostFunc(stream, rest, NULL));
    ok(cuStreamSynchronize(stream));
    ok(cuMemFreeHost(before));
    must(setrlimit(RLIMIT_NOFILE, &most) == 0);
    ok(cuMemHostAlloc(&pinned, 4096, 0));
    ok(cuMemFreeHost(pinned));
}
