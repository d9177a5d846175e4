// SPDX-License-Identifier: MIT
/*
 * card-probe STEP: what tests/cuda/on-card asks of a card, with the driver or the door that the
 * loader finds. Prints "NAME VALUE" lines.
 *
 *   costs     nanoseconds of calls, on a stream that is kept short
 *   memory    what calls take from the card by the driver's own numbers, in bytes
 *   getproc   functions that cuGetProcAddress returns and the library does not export
 *   handles   whether handles that name memory are the same for one memory
 *   events    how much longer kernels of 200 us take if a pair of events is around each third
 *   order     what calls wait for while a kernel of 200 ms runs, in ms; and whether memory that is
 *             freed on a stream comes back before the stream is there
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cuda_abi.h"
#include "spin.h"

int cuInit(unsigned int flags);
int cuDriverGetVersion(int *version);
int cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
int cuCtxGetCurrent(CUcontext *context);
int cuCtxGetDevice(CUdevice *device);
int cuCtxSynchronize(void);
int cuStreamCreate(CUstream *stream, unsigned int flags);
int cuStreamSynchronize(CUstream stream);
int cuStreamIsCapturing(CUstream stream, int *status);
int cuEventCreate(CUevent *event, unsigned int flags);
int cuEventRecord(CUevent event, CUstream stream);
int cuEventQuery(CUevent event);
int cuEventElapsedTime(float *ms, CUevent begin, CUevent end);
int cuStreamWaitValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned int flags);
int cuMemGetInfo_v2(size_t *available, size_t *total);
int cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
int cuMemFree_v2(CUdeviceptr at);
int cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream);
int cuMemFreeAsync(CUdeviceptr at, CUstream stream);
int cuMemHostRegister_v2(void *at, size_t bytes, unsigned int flags);
int cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wanted,
                        unsigned long long flags);
int cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags);
int cuMemUnmap(CUdeviceptr at, size_t bytes);
int cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                unsigned long long flags);
int cuMemRelease(CUmemGenericAllocationHandle handle);
int cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle, int type,
                                 unsigned long long flags);
int cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                        int *status);

#define TIMES 2000
#define SIZE  (64u << 20)

static CUstream stream;

static void check(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "card-probe: %s: error %d\n", what, result);
    exit(1);
}

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void open_card(void)
{
    CUcontext context;

    check(cuInit(0), "cuInit");
    check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    check(spin_open(), "the kernel");
    if (!spin_is_fake())
        check(cuStreamCreate(&stream, 1), "cuStreamCreate");
}

/* The mean of many calls; the stream is waited for after each 100, which does not count. */
#define COST(name, call)                                                                           \
    do {                                                                                           \
        uint64_t took = 0;                                                                         \
        for (unsigned int i = 0; i < TIMES; i += 100) {                                            \
            uint64_t from = now();                                                                 \
            for (unsigned int k = 0; k < 100; k++)                                                 \
                (void)(call);                                                                      \
            took += now() - from;                                                                  \
            check(cuStreamSynchronize(stream), "cuStreamSynchronize");                             \
        }                                                                                          \
        printf("%s %.1f\n", name, (double)took / TIMES);                                           \
    } while (0)

static void costs(void)
{
    CUevent timed, untimed;
    CUcontext context;
    CUdeviceptr at;
    CUdevice device;
    size_t available, total;
    int status, mode = 2;
    float ms;

    check(cuEventCreate(&timed, 0), "cuEventCreate");
    check(cuEventCreate(&untimed, 2), "cuEventCreate");
    for (unsigned int i = 0; i < 200; i++)
        check(spin_launch(1000, stream), "a launch");
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    COST("launch", spin_launch(1000, stream));
    COST("event-record", cuEventRecord(timed, stream));
    COST("event-record-untimed", cuEventRecord(untimed, stream));
    COST("event-query", cuEventQuery(timed));
    COST("event-elapsed", cuEventElapsedTime(&ms, timed, timed));
    COST("is-capturing", cuStreamIsCapturing(stream, &status));
    COST("context-current", cuCtxGetCurrent(&context));
    COST("context-device", cuCtxGetDevice(&device));
    COST("capture-mode", cuThreadExchangeStreamCaptureMode(&mode));
    COST("memory-info", cuMemGetInfo_v2(&available, &total));
    COST("alloc-free-2-mib", cuMemAlloc_v2(&at, 2u << 20) || cuMemFree_v2(at));
    COST("alloc-free-async", cuMemAllocAsync(&at, 2u << 20, stream) || cuMemFreeAsync(at, stream));
}

static size_t available_now(void)
{
    size_t available, total;

    check(cuCtxSynchronize(), "cuCtxSynchronize");
    check(cuMemGetInfo_v2(&available, &total), "cuMemGetInfo");
    return available;
}

/* Others' memory may have come back meanwhile. */
static void took(const char *name, size_t before)
{
    printf("%s %lld\n", name, (long long)before - (long long)available_now());
}

static void memory(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;
    size_t before = available_now();
    CUdeviceptr at;

    check(cuMemAlloc_v2(&at, SIZE), "cuMemAlloc");
    took("alloc-64-mib", before);
    check(cuMemFree_v2(at), "cuMemFree");
    took("alloc-64-mib-freed", before);
    before = available_now();
    for (unsigned int i = 0; i < 100; i++)
        check(cuMemAlloc_v2(&at, 4096), "cuMemAlloc");
    took("alloc-100-pages", before);
    before = available_now();
    check(cuMemAllocAsync(&at, SIZE, stream), "cuMemAllocAsync");
    took("pool-64-mib", before);
    check(cuMemFreeAsync(at, stream), "cuMemFreeAsync");
    took("pool-64-mib-freed", before);
    before = available_now();
    check(cuMemCreate(&handle, SIZE, &prop, 0), "cuMemCreate");
    took("physical-64-mib", before);
    check(cuMemRelease(handle), "cuMemRelease");
}

/* @names: lines of the first words, of functions as the driver exports them. */
static void getproc(const char *names)
{
    FILE *file = fopen(names, "re");
    unsigned int asked = 0, hidden = 0;
    char line[256];
    int version;

    check(cuDriverGetVersion(&version), "cuDriverGetVersion");
    while (file && fgets(line, sizeof(line), file)) {
        void *function = NULL;
        Dl_info info;
        int status;

        line[strcspn(line, " \n")] = 0;
        if (cuGetProcAddress_v2(line, &function, version, 0, &status) || !function)
            continue;
        asked++;
        /* The nearest exported symbol must begin there. */
        if (!dladdr(function, &info) || info.dli_saddr != function)
            hidden++;
    }
    printf("returned %u\nnot-exported %u\n", asked, hidden);
}

static void handles(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;
    CUipcMemHandle one, other;
    struct stat first, second;
    CUdeviceptr at;
    int fds[2];

    check(cuMemAlloc_v2(&at, SIZE), "cuMemAlloc");
    check(cuIpcGetMemHandle(&one, at), "cuIpcGetMemHandle");
    check(cuIpcGetMemHandle(&other, at), "cuIpcGetMemHandle");
    printf("ipc-handle-same %d\n", !memcmp(&one, &other, sizeof(one)));
    check(cuMemCreate(&handle, SIZE, &prop, 0), "cuMemCreate");
    check(cuMemExportToShareableHandle(&fds[0], handle, 1, 0), "an export");
    check(cuMemExportToShareableHandle(&fds[1], handle, 1, 0), "an export");
    check(fstat(fds[0], &first) || fstat(fds[1], &second), "fstat");
    printf("fd-is-device %d\nfd-inode-same %d\n", S_ISCHR(first.st_mode),
           first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

/* A third of the launches has events as the door records them. */
static uint64_t time_launches(CUevent begin, CUevent end)
{
    uint64_t from = now();

    for (unsigned int i = 0; i < 300; i++) {
        if (begin && i % 3 == 0)
            check(cuEventRecord(begin, stream), "cuEventRecord");
        check(spin_launch(200000, stream), "a launch");
        if (end && i % 3 == 2)
            check(cuEventRecord(end, stream), "cuEventRecord");
    }
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    return now() - from;
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return (one > other) - (one < other);
}

static void events(void)
{
    double pairs[9], ends[9];
    CUevent begin, end;

    check(cuEventCreate(&begin, 0), "cuEventCreate");
    check(cuEventCreate(&end, 0), "cuEventCreate");
    time_launches(NULL, NULL);
    for (unsigned int i = 0; i < 9; i++) {
        double bare = (double)time_launches(NULL, NULL);

        pairs[i] = (double)time_launches(begin, end) / bare;
        ends[i] = (double)time_launches(NULL, end) / bare;
    }
    qsort(pairs, 9, sizeof(*pairs), compare);
    qsort(ends, 9, sizeof(*ends), compare);
    printf("pair %.5f\none %.5f\n", pairs[4], ends[4]);
}

static double ms_since(uint64_t from)
{
    return (double)(now() - from) / 1e6;
}

/* cuMemUnmap() and cuMemFree() of memory that no kernel uses. */
static void time_calls_beside_a_kernel(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at, other;
    uint64_t from;

    check(cuMemCreate(&handle, SIZE, &prop, 0), "cuMemCreate");
    check(cuMemAddressReserve(&at, SIZE, 0, 0, 0), "cuMemAddressReserve");
    check(cuMemMap(at, SIZE, 0, handle, 0), "cuMemMap");
    check(cuMemAlloc_v2(&other, SIZE), "cuMemAlloc");
    check(spin_launch(200000000, stream), "a launch");
    from = now();
    check(cuMemUnmap(at, SIZE), "cuMemUnmap");
    printf("unmap-ms %.3f\n", ms_since(from));
    from = now();
    check(cuMemRelease(handle), "cuMemRelease");
    printf("release-ms %.3f\n", ms_since(from));
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    check(spin_launch(200000000, stream), "a launch");
    from = now();
    check(cuMemFree_v2(other), "cuMemFree");
    printf("free-ms %.3f\n", ms_since(from));
    check(cuCtxSynchronize(), "cuCtxSynchronize");
}

static void free_behind_a_wait(void)
{
    size_t before, during, total;
    /* Of the process, so that the fake card has it, too. */
    volatile uint32_t *word = aligned_alloc(4096, 4096);
    CUdeviceptr at;

    *word = 0;
    check(cuMemHostRegister_v2((void *)word, 4096, 0), "cuMemHostRegister");
    before = available_now();
    check(cuMemAlloc_v2(&at, SIZE), "cuMemAlloc");
    check(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)word, 1, 0), "cuStreamWaitValue32");
    check(cuMemFreeAsync(at, stream), "cuMemFreeAsync");
    check(cuMemGetInfo_v2(&during, &total), "cuMemGetInfo");
    *word = 1;
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    printf("freed-before-the-stream %d\nkept-after %lld\n", during + SIZE / 2 > before,
           (long long)before - (long long)available_now());
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    open_card();
    if (!strcmp(argv[1], "costs"))
        costs();
    else if (!strcmp(argv[1], "memory"))
        memory();
    else if (!strcmp(argv[1], "getproc") && argc == 3)
        getproc(argv[2]);
    else if (!strcmp(argv[1], "handles"))
        handles();
    else if (!strcmp(argv[1], "events"))
        events();
    else if (!strcmp(argv[1], "order")) {
        time_calls_beside_a_kernel();
        free_behind_a_wait();
    } else
        return 2;
    return 0;
}
