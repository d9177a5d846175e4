// SPDX-License-Identifier: MIT
/*
 * A service whose memory is most of the card, for tests/cuda/on-card --memory. It knows nothing of
 * slices. It prints lines "NAME VALUE"; times are seconds.
 *
 *   card-service size
 *           "total" and "free": bytes of the card
 *   card-service own|managed BYTES AT BUSY GAP SECONDS [LOCK]
 *           From AT on, by CLOCK_MONOTONIC, it allocates, and works for BUSY seconds at a time with
 *           GAP seconds between them, for SECONDS in all. A job adds one to each word of its
 *           memory. With LOCK it works only while it has that file for itself. "allocated": how
 *           long it had to wait for its memory; "jobs", "job": how long the median one takes;
 *           "first": the longest first job of a burst but the first one; "sound": 1 if each block
 *           has counted all jobs
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "cuda_abi.h"
#include "spin.h"

int cuInit(unsigned int flags);
int cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
int cuCtxSynchronize(void);
int cuMemGetInfo_v2(size_t *left, size_t *total);
int cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
int cuMemFree_v2(CUdeviceptr at);
int cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned int flags);
int cuMemsetD32_v2(CUdeviceptr at, unsigned int value, size_t count);
int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                   unsigned int by, unsigned int bz, unsigned int shared, void *stream,
                   void **parameters, void **extra);

#define SECOND        1000000000ull
#define MIB           (1ull << 20)
#define BLOCKS        16u
#define JOBS_MOST     1000000u
#define BURSTS_MOST   1000u
#define OUT_OF_MEMORY 2

static const char count_ptx[] = ".version 6.0\n"
                                ".target sm_60\n"
                                ".address_size 64\n"
                                ".visible .entry count(.param .u64 memory, .param .u64 words)\n"
                                "{\n"
                                "    .reg .u64 %at, %words, %i, %step, %p, %v;\n"
                                "    .reg .u32 %block, %size, %thread;\n"
                                "    .reg .pred %done;\n"
                                "    ld.param.u64 %at, [memory];\n"
                                "    ld.param.u64 %words, [words];\n"
                                "    cvta.to.global.u64 %at, %at;\n"
                                "    mov.u32 %block, %ctaid.x;\n"
                                "    mov.u32 %size, %ntid.x;\n"
                                "    mov.u32 %thread, %tid.x;\n"
                                "    mul.wide.u32 %i, %block, %size;\n"
                                "    cvt.u64.u32 %v, %thread;\n"
                                "    add.u64 %i, %i, %v;\n"
                                "    mov.u32 %block, %nctaid.x;\n"
                                "    mul.wide.u32 %step, %block, %size;\n"
                                "again:\n"
                                "    setp.ge.u64 %done, %i, %words;\n"
                                "    @%done bra end;\n"
                                "    shl.b64 %p, %i, 3;\n"
                                "    add.u64 %p, %p, %at;\n"
                                "    ld.global.u64 %v, [%p];\n"
                                "    add.u64 %v, %v, 1;\n"
                                "    st.global.u64 [%p], %v;\n"
                                "    add.u64 %i, %i, %step;\n"
                                "    bra again;\n"
                                "end:\n"
                                "    ret;\n"
                                "}\n";

/**
 * struct service - the program
 * @bytes: of each block
 * @lock: a file; -1: none
 * @first_s: of each burst; @job_s: of each job
 */
struct service {
    bool managed;
    size_t bytes;
    CUdeviceptr blocks[BLOCKS];
    void *count;
    int lock;
    unsigned int jobs;
    unsigned int bursts;
    double first_s[BURSTS_MOST];
    double job_s[JOBS_MOST];
};

static struct service service;

static void check(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "card-service: %s: error %d\n", what, result);
    exit(1);
}

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / (double)SECOND;
}

static void sleep_until(double at)
{
    double left = at - now_s();

    if (left > 0)
        nanosleep(&(struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)},
                  NULL);
}

static void open_card(void)
{
    CUcontext context;
    void *module;

    check(cuInit(0), "cuInit");
    check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    if (spin_is_fake())
        return;
    check(cuModuleLoadData(&module, count_ptx), "the module");
    check(cuModuleGetFunction(&service.count, module, "count"), "the kernel");
}

static int allocate(CUdeviceptr *at)
{
    /* Flag 1: for every stream. */
    return service.managed ? cuMemAllocManaged(at, service.bytes, 1)
                           : cuMemAlloc_v2(at, service.bytes);
}

/* Of who is killed at that moment the memory is not free at once. */
static void allocate_all(void)
{
    for (unsigned int i = 0; i < BLOCKS; i++) {
        int result;

        while ((result = allocate(&service.blocks[i])) == OUT_OF_MEMORY)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        check(result, "the memory");
    }
    for (unsigned int i = 0; i < BLOCKS; i++)
        check(cuMemsetD32_v2(service.blocks[i], 0, service.bytes / 4), "cuMemsetD32");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
}

/* The fake card takes too long for each word. */
static void add_one(CUdeviceptr at)
{
    uint64_t words = service.bytes / 8;
    void *parameters[] = {&at, &words};

    if (service.count)
        check(cuLaunchKernel(service.count, 1024, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL),
              "a launch");
    else
        check(cuMemsetD32_v2(at, service.jobs + 1, service.bytes / 4), "cuMemsetD32");
}

static double do_job(void)
{
    double from = now_s();

    for (unsigned int i = 0; i < BLOCKS; i++)
        add_one(service.blocks[i]);
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    service.job_s[service.jobs++] = now_s() - from;
    return now_s() - from;
}

static void work_until(double until)
{
    double from = now_s();

    if (service.lock >= 0)
        flock(service.lock, LOCK_EX);
    do_job();
    if (service.bursts < BURSTS_MOST)
        service.first_s[service.bursts++] = now_s() - from;
    while (now_s() < until && service.jobs < JOBS_MOST)
        do_job();
    if (service.lock >= 0)
        flock(service.lock, LOCK_UN);
}

static bool is_sound(void)
{
    for (unsigned int i = 0; i < BLOCKS; i++)
        for (unsigned int end = 0; end < 2; end++) {
            uint32_t word = 0;

            check(cuMemcpyDtoH_v2(&word, service.blocks[i] + (end ? service.bytes - 8 : 0),
                                  sizeof(word)),
                  "cuMemcpyDtoH");
            if (word != service.jobs)
                return false;
        }
    return true;
}

/* Who waits for it need not wait for the process' end. */
static void free_all(void)
{
    for (unsigned int i = 0; i < BLOCKS; i++)
        check(cuMemFree_v2(service.blocks[i]), "cuMemFree");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_times(void)
{
    double first = 0;

    for (unsigned int i = 1; i < service.bursts; i++)
        first = service.first_s[i] > first ? service.first_s[i] : first;
    qsort(service.job_s, service.jobs, sizeof(double), by_value);
    printf("jobs %u\njob %.6f\nfirst %.6f\n", service.jobs, service.job_s[service.jobs / 2], first);
}

static void serve_jobs(double at, double busy, double gap, double seconds)
{
    double from;

    sleep_until(at);
    from = now_s();
    allocate_all();
    printf("allocated %.6f\n", now_s() - from);
    fflush(stdout);
    for (double begin = at; begin < at + seconds; begin += busy + gap) {
        sleep_until(begin);
        work_until(begin + busy < at + seconds ? begin + busy : at + seconds);
    }
    printf("sound %d\n", is_sound());
    free_all();
    print_times();
}

static void print_size(void)
{
    size_t left, total;

    check(cuMemGetInfo_v2(&left, &total), "cuMemGetInfo");
    printf("total %zu\nfree %zu\n", total, left);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "size")) {
        open_card();
        print_size();
        return 0;
    }
    if (argc < 7) {
        fputs("card-service size | own|managed BYTES AT BUSY GAP SECONDS [LOCK]\n", stderr);
        return 2;
    }
    service.managed = !strcmp(argv[1], "managed");
    service.bytes = strtoull(argv[2], NULL, 10) / BLOCKS / (2 * MIB) * (2 * MIB);
    service.lock = argc > 7 ? open(argv[7], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    open_card();
    serve_jobs(strtod(argv[3], NULL), strtod(argv[4], NULL), strtod(argv[5], NULL),
               strtod(argv[6], NULL));
    return 0;
}
