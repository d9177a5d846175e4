// SPDX-License-Identifier: MIT
/*
 * cuda-load: a program of the CUDA benchmark, over the fake card or a real one, with or without the
 * door. It knows nothing of slices. It prints numbers.
 *
 * - launch N: launches, which callgrind counts in burst(); waits after each 64
 * - loop NS LAUNCHES S: kernels of NS until it waits for LAUNCHES of them, for S seconds after the
 *   first one. "copy" as NS: copies that take the fake card 2 ms
 * - start: how long it takes to have a context
 * - memory N: takes and gives back 2 MiB so many times, beside 100 others that it keeps; the mean,
 *   in us
 * - hold BYTES S: takes pieces of BYTES until there are none, and keeps them for S seconds
 * - flood NS N: launches that it does not wait for: how far ahead of the fake card it got
 * - calls NS N: kernels of NS, eight at a time: how often the fake driver was called meanwhile by
 *   each of the functions that batches need, beside the launches
 * - ask N: a question of the driver, so many times: the median and what 99 of 100 took, in us
 * - repeat WHAT N: a question whose answer does not change, so many times, which callgrind counts
 *   in repeat()
 * - peek: what the fake card has given out, now and at most
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "card.h"
#include "spin.h"

typedef void *handle;
int cuInit(unsigned int flags);
int cuCtxCreate_v2(handle *context, unsigned int flags, int device);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, handle stream);
int cuStreamSynchronize(handle stream);
int cuCtxGetCurrent(handle *context);
int cuCtxGetLimit(size_t *to, unsigned int limit);
int cuDeviceGetAttribute(int *to, unsigned int attribute, int device);
int cuPointerGetAttribute(void *to, unsigned int attribute, uint64_t at);
int cuStreamIsCapturing(handle stream, unsigned int *status);
int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int cuMemFree_v2(uint64_t at);
int cuMemAllocHost_v2(void **at, size_t bytes);
void burst(unsigned int count);
void repeat(void (*question)(void), unsigned int count);

#define SECOND 1000000000u
/* As the fake card copies. */
#define COPY_NS    2000000u
#define COPY_BYTES (12 * COPY_NS)
#define UNIT_NS    10000u
#define PIECE      (2u << 20)

static uint64_t read_clock(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void check_result(int result)
{
    if (!result)
        return;
    fprintf(stderr, "cuda-load: error %d\n", result);
    exit(1);
}

static void launch_kernel(uint64_t ns)
{
    check_result(spin_launch(ns, NULL));
}

static void make_context(void)
{
    handle made;

    check_result(cuInit(0));
    check_result(cuCtxCreate_v2(&made, 0, 0));
    check_result(spin_open());
}

__attribute__((noinline)) void burst(unsigned int count)
{
    for (unsigned int i = 1; i <= count; i++) {
        launch_kernel(UNIT_NS);
        if (i % 64 == 0)
            check_result(cuStreamSynchronize(NULL));
    }
}

/* The arbiter measures it from the first launches on, if there is a reason. */
static void time_launches(unsigned int count)
{
    struct timespec some = {.tv_nsec = 200000000};

    make_context();
    for (unsigned int i = 0; i < 20; i++) {
        launch_kernel(UNIT_NS);
        check_result(cuStreamSynchronize(NULL));
    }
    nanosleep(&some, NULL);
    burst(count);
}

static void loop_kind(const char *kind, unsigned int count, double seconds)
{
    uint64_t ns = strcmp(kind, "copy") ? strtoull(kind, NULL, 10) : 0, done = 0, from, to;
    uint64_t to_copy = 0;
    void *from_copy = NULL;

    make_context();
    /* The fake card does not touch them. */
    if (!ns && !spin_is_fake())
        check_result(cuMemAlloc_v2(&to_copy, COPY_BYTES) ||
                     cuMemAllocHost_v2(&from_copy, COPY_BYTES));
    from = read_clock() + SECOND;
    to = from + (uint64_t)(seconds * SECOND);
    while (read_clock() < to) {
        for (unsigned int i = 0; i < count; i++) {
            if (ns)
                launch_kernel(ns);
            else
                check_result(cuMemcpyHtoDAsync_v2(to_copy, from_copy, COPY_BYTES, NULL));
        }
        check_result(cuStreamSynchronize(NULL));
        if (read_clock() > from)
            done += count * (ns ? ns : COPY_NS);
    }
    printf("%.6f\n", (double)done / (double)(read_clock() - from));
}

static struct card look_at_card(void)
{
    void (*function)(struct card *) = NULL;
    struct card card;

    *(void **)&function = dlsym(dlopen(REAL_DIR "/libcuda.so.1", RTLD_NOW), "card_look");
    function(&card);
    return card;
}

static uint64_t waiting_ns(void)
{
    uint64_t (*function)(unsigned int) = NULL;

    *(void **)&function = dlsym(dlopen(REAL_DIR "/libcuda.so.1", RTLD_NOW), "fake_waiting_ns");
    /* To compute. */
    return function(0);
}

static void time_calls(uint64_t ns, unsigned int count)
{
    static const char *const names[] = {
        "cuEventRecord",          "cuEventQuery",        "cuEventElapsedTime",
        "cuCtxSetCurrent",        "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode",
        "cuStreamWriteValue64_v2"};
    unsigned int (*of)(const char *) = NULL, before[7];

    make_context();
    *(void **)&of = dlsym(dlopen(REAL_DIR "/libcuda.so.1", RTLD_NOW), "fake_count");
    for (unsigned int i = 0; i < 40 + count; i++) {
        /* By then it is known how long they take. */
        for (unsigned int j = 0; i == 40 && j < 7; j++)
            before[j] = of(names[j]);
        launch_kernel(ns);
        if (i % 8 == 7)
            check_result(cuStreamSynchronize(NULL));
    }
    for (unsigned int j = 0; j < 7; j++)
        printf("%s %.2f\n", names[j], (double)(of(names[j]) - before[j]) / count);
}

static void flood_card(uint64_t ns, unsigned int count)
{
    uint64_t most = 0, from;

    make_context();
    from = read_clock();
    for (unsigned int i = 0; i < count; i++) {
        uint64_t waiting;

        launch_kernel(ns);
        waiting = waiting_ns();
        most = waiting > most ? waiting : most;
    }
    check_result(cuStreamSynchronize(NULL));
    printf("%.3f %.6f\n", (double)most / 1e6, (double)ns * count / (double)(read_clock() - from));
}

static void time_start(void)
{
    uint64_t from = read_clock();

    make_context();
    printf("%.3f\n", (double)(read_clock() - from) / 1e6);
}

static void take_and_give(unsigned int count)
{
    uint64_t at;

    for (unsigned int i = 0; i < count; i++)
        check_result(cuMemAlloc_v2(&at, PIECE) || cuMemFree_v2(at));
}

/* With some others that are kept, as programs have. */
static void time_memory(unsigned int count)
{
    uint64_t at, from;

    make_context();
    for (unsigned int i = 0; i < 100; i++)
        check_result(cuMemAlloc_v2(&at, PIECE));
    take_and_give(100);
    from = read_clock();
    take_and_give(count);
    printf("%.3f\n", (double)(read_clock() - from) / 1e3 / count);
}

static void hold_memory(size_t bytes, unsigned int seconds)
{
    unsigned int pieces = 0, refused = 0;
    uint64_t at;

    make_context();
    while (refused < 20) {
        if (cuMemAlloc_v2(&at, bytes) == 0)
            pieces++;
        else
            refused++;
    }
    printf("%llu\n", (unsigned long long)pieces * bytes);
    fflush(stdout);
    sleep(seconds);
}

static int compare_times(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

    return first < second ? -1 : first > second;
}

static void time_asking(unsigned int count)
{
    uint64_t *took = calloc(count, sizeof(*took));
    size_t limit;

    make_context();
    for (unsigned int i = 0; i < count; i++) {
        uint64_t from = read_clock();

        check_result(cuCtxGetLimit(&limit, 0));
        took[i] = read_clock() - from;
    }
    qsort(took, count, sizeof(*took), compare_times);
    printf("%.3f %.3f\n", (double)took[count / 2] / 1e3, (double)took[count / 100 * 99] / 1e3);
    free(took);
}

static uint64_t on_card;

static void ask_context(void)
{
    handle is;

    check_result(cuCtxGetCurrent(&is));
}

static void ask_pointer(void)
{
    unsigned int type;

    check_result(cuPointerGetAttribute(&type, 2, on_card));
}

static void ask_device(void)
{
    int warp;

    check_result(cuDeviceGetAttribute(&warp, 10, 0));
}

static void ask_stream(void)
{
    unsigned int status;

    check_result(cuStreamIsCapturing(NULL, &status));
}

__attribute__((noinline)) void repeat(void (*question)(void), unsigned int count)
{
    for (unsigned int i = 0; i < count; i++)
        question();
}

static void time_questions(const char *what, unsigned int count)
{
    static const struct {
        const char *name;
        void (*question)(void);
    } all[] = {{"context", ask_context},
               {"pointer", ask_pointer},
               {"device", ask_device},
               {"stream", ask_stream}};
    uint64_t others[100];

    make_context();
    for (unsigned int i = 0; i < 100; i++)
        check_result(cuMemAlloc_v2(&others[i], PIECE));
    on_card = others[37];
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!strcmp(all[i].name, what)) {
            all[i].question();
            repeat(all[i].question, count);
        }
}

static void print_card(void)
{
    struct card card = look_at_card();

    printf("%llu %llu\n", (unsigned long long)card.used, (unsigned long long)card.peak);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "launch"))
        time_launches((unsigned int)atoi(argv[2]));
    else if (argc == 4 && !strcmp(argv[1], "calls"))
        time_calls(strtoull(argv[2], NULL, 10), (unsigned int)atoi(argv[3]));
    else if (argc == 5 && !strcmp(argv[1], "loop"))
        loop_kind(argv[2], (unsigned int)atoi(argv[3]), atof(argv[4]));
    else if (argc == 4 && !strcmp(argv[1], "flood"))
        flood_card(strtoull(argv[2], NULL, 10), (unsigned int)atoi(argv[3]));
    else if (argc == 2 && !strcmp(argv[1], "start"))
        time_start();
    else if (argc == 3 && !strcmp(argv[1], "memory"))
        time_memory((unsigned int)atoi(argv[2]));
    else if (argc == 4 && !strcmp(argv[1], "hold"))
        hold_memory(strtoull(argv[2], NULL, 10), (unsigned int)atoi(argv[3]));
    else if (argc == 3 && !strcmp(argv[1], "ask"))
        time_asking((unsigned int)atoi(argv[2]));
    else if (argc == 4 && !strcmp(argv[1], "repeat"))
        time_questions(argv[2], (unsigned int)atoi(argv[3]));
    else if (argc == 2 && !strcmp(argv[1], "peek"))
        print_card();
    else
        return 2;
    return 0;
}
