// SPDX-License-Identifier: MIT
/*
 * card-tenant KIND SECONDS [AT]: tenants for tests/cuda/on-card, most of them hard to measure. It
 * knows nothing of slices. It begins to count at AT, by CLOCK_MONOTONIC in seconds, or after a
 * second, and prints "counting". Then it prints lines "NAME VALUE": "work" is for how many seconds
 * the card ran its kernels since then, "of" in how many seconds of the clock.
 *
 *   NSxCOUNT so many kernels of so many nanoseconds, and then it waits for them
 *   overlap  a graph of 100 ms on one stream, and a small copy each 200 us on another one
 *   varying  a kernel that took 10 us for long, and then takes 5 ms with the same function and grid
 *   pauses   two kernels with 3 ms of nothing between them
 *   waits    two kernels with a wait of 20 ms for a word of the host's between them
 *   parked   kernels of 5 ms, as many as it can launch, beside a stream that waits for the end
 *   online   50 jobs of 1 ms a second: the median and the 99th percentile, in us, as "p50", "p99"
 *   online-copy  the same, and each job begins with a copy of 32 MiB
 *   up, down, within  copies from the host, to the host, and on the card: GiB a second as "copied"
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_abi.h"
#include "spin.h"

int cuInit(unsigned int flags);
int cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
int cuStreamCreate(CUstream *stream, unsigned int flags);
int cuStreamSynchronize(CUstream stream);
int cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
int cuStreamEndCapture(CUstream stream, CUgraph *graph);
int cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
int cuGraphLaunch(CUgraphExec exec, CUstream stream);
int cuEventCreate(CUevent *event, unsigned int flags);
int cuEventRecord(CUevent event, CUstream stream);
int cuEventQuery(CUevent event);
int cuStreamWaitValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned int flags);
int cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
int cuMemHostRegister_v2(void *at, size_t bytes, unsigned int flags);
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);

#define US         1000ull
#define MS         1000000ull
#define SECOND     1000000000ull
#define GIB        (1ull << 30)
#define COPY_BYTES (64ull << 20)
/* So that they are no longer than a turn. */
#define COPIES       4
#define JOB_BYTES    (32ull << 20)
#define JOBS_MOST    100000u
#define IN_FLIGHT    64u
#define GRAPH_LAUNCH (5 * MS)
#define GRAPH_NODES  20u

/**
 * struct tenant - the program
 * @main, @beside: its streams
 * @card, @other: memory of the card; @host: pinned memory
 * @word: of pinned memory, which a stream waits for; @turn: what it waited for last
 * @ns, @count: of NSxCOUNT
 * @from, @to: when it begins to count, and when it ends
 */
struct tenant {
    unsigned int ns;
    unsigned int count;
    CUstream main;
    CUstream beside;
    CUdeviceptr card;
    CUdeviceptr other;
    void *host;
    volatile uint32_t *word;
    uint32_t turn;
    CUgraphExec graph;
    CUevent event;
    uint64_t from;
    uint64_t to;
};

/* One round: returns what it has done, in ns of kernels or in bytes. */
typedef uint64_t (*round_function)(struct tenant *tenant);

static void check(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "card-tenant: %s: error %d\n", what, result);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    nanosleep(&(struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)}, NULL);
}

static void launch(uint64_t ns, CUstream stream)
{
    check(spin_launch(ns, stream), "a launch");
}

static void wait_for(CUstream stream)
{
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static void wait_for_word(struct tenant *tenant, CUstream stream)
{
    /* Flag 0: until it is at least that. */
    check(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)tenant->word, ++tenant->turn, 0),
          "cuStreamWaitValue32");
}

/* Memory of the process, so that the fake card has it, too. */
static void *pin_memory(size_t bytes)
{
    void *at = aligned_alloc(4096, bytes);

    if (!at) {
        fputs("card-tenant: no memory\n", stderr);
        exit(1);
    }
    memset(at, 0, bytes);
    check(cuMemHostRegister_v2(at, bytes, 0), "cuMemHostRegister");
    return at;
}

static void open_card(struct tenant *tenant)
{
    CUcontext context;

    check(cuInit(0), "cuInit");
    check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    check(spin_open(), "the kernel");
    /* Flag 1: streams that do not wait for the default one. */
    check(cuStreamCreate(&tenant->main, 1), "cuStreamCreate");
    check(cuStreamCreate(&tenant->beside, 1), "cuStreamCreate");
    check(cuMemAlloc_v2(&tenant->card, COPY_BYTES), "cuMemAlloc");
    check(cuMemAlloc_v2(&tenant->other, COPY_BYTES), "cuMemAlloc");
    tenant->host = pin_memory(COPY_BYTES);
    tenant->word = pin_memory(4096);
    check(cuEventCreate(&tenant->event, 2), "cuEventCreate");
}

static void capture_graph(struct tenant *tenant)
{
    CUgraph graph;

    check(cuStreamBeginCapture_v2(tenant->main, CU_STREAM_CAPTURE_MODE_RELAXED), "a capture");
    for (unsigned int i = 0; i < GRAPH_NODES; i++)
        launch(GRAPH_LAUNCH, tenant->main);
    check(cuStreamEndCapture(tenant->main, &graph), "a capture");
    check(cuGraphInstantiateWithFlags(&tenant->graph, graph, 0), "a graph");
}

static uint64_t kernels(struct tenant *tenant)
{
    for (unsigned int i = 0; i < tenant->count; i++)
        launch(tenant->ns, tenant->main);
    wait_for(tenant->main);
    return (uint64_t)tenant->ns * tenant->count;
}

static uint64_t overlap(struct tenant *tenant)
{
    int state;

    if (!tenant->graph)
        capture_graph(tenant);
    check(cuGraphLaunch(tenant->graph, tenant->main), "cuGraphLaunch");
    check(cuEventRecord(tenant->event, tenant->main), "cuEventRecord");
    while ((state = cuEventQuery(tenant->event)) == CUDA_ERROR_NOT_READY) {
        check(cuMemcpyHtoDAsync_v2(tenant->card, tenant->host, 4096, tenant->beside), "a copy");
        sleep_ns(200 * US);
    }
    check(state, "cuEventQuery");
    return GRAPH_NODES * GRAPH_LAUNCH;
}

static uint64_t varying(struct tenant *tenant)
{
    uint64_t ns = now_ns() < tenant->from ? 10 * US : 5 * MS;

    launch(ns, tenant->main);
    sleep_ns(250 * US);
    wait_for(tenant->main);
    return ns;
}

static uint64_t pauses(struct tenant *tenant)
{
    launch(MS, tenant->main);
    sleep_ns(3 * MS);
    launch(MS, tenant->main);
    wait_for(tenant->main);
    return 2 * MS;
}

static uint64_t waits(struct tenant *tenant)
{
    launch(MS, tenant->main);
    wait_for_word(tenant, tenant->main);
    launch(MS, tenant->main);
    sleep_ns(20 * MS);
    *tenant->word = tenant->turn;
    wait_for(tenant->main);
    return 2 * MS;
}

static uint64_t parked(struct tenant *tenant)
{
    if (!tenant->turn) {
        launch(MS, tenant->beside);
        wait_for_word(tenant, tenant->beside);
        launch(MS, tenant->beside);
    }
    for (unsigned int i = 0; i < IN_FLIGHT; i++)
        launch(5 * MS, tenant->main);
    wait_for(tenant->main);
    return IN_FLIGHT * 5 * MS;
}

static uint64_t up(struct tenant *tenant)
{
    for (unsigned int i = 0; i < COPIES; i++)
        check(cuMemcpyHtoDAsync_v2(tenant->card, tenant->host, COPY_BYTES, tenant->main), "a copy");
    wait_for(tenant->main);
    return COPIES * COPY_BYTES;
}

static uint64_t down(struct tenant *tenant)
{
    for (unsigned int i = 0; i < COPIES; i++)
        check(cuMemcpyDtoHAsync_v2(tenant->host, tenant->card, COPY_BYTES, tenant->main), "a copy");
    wait_for(tenant->main);
    return COPIES * COPY_BYTES;
}

static uint64_t within(struct tenant *tenant)
{
    for (unsigned int i = 0; i < COPIES; i++)
        check(cuMemcpyDtoDAsync_v2(tenant->other, tenant->card, COPY_BYTES, tenant->main),
              "a copy");
    wait_for(tenant->main);
    return COPIES * COPY_BYTES;
}

/* It works from its start on. */
static void run_rounds(struct tenant *tenant, round_function round, double seconds, double at)
{
    bool copies = round == up || round == down || round == within;
    uint64_t done = 0, now;

    tenant->from = UINT64_MAX;
    round(tenant);
    tenant->from = at > 0 ? (uint64_t)(at * SECOND) : now_ns() + SECOND;
    if (now_ns() > tenant->from) {
        fputs("card-tenant: it has started too late\n", stderr);
        exit(1);
    }
    while (now_ns() < tenant->from)
        round(tenant);
    tenant->from = now_ns();
    tenant->to = tenant->from + (uint64_t)(seconds * SECOND);
    puts("counting");
    fflush(stdout);
    do
        done += round(tenant);
    while ((now = now_ns()) < tenant->to);
    if (copies)
        printf("copied %.3f\n", (double)done / GIB / (double)(now - tenant->from) * SECOND);
    else
        printf("work %.6f\n", (double)done / SECOND);
    printf("of %.6f\n", (double)(now - tenant->from) / SECOND);
    fflush(stdout);
    *tenant->word = tenant->turn;
    wait_for(tenant->beside);
}

static int compare(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

/* When the next job comes after the last: 10 to 30 ms, so that it is in no step with a lease. */
static uint64_t next_after(void)
{
    static uint64_t state = 88172645463325252ull;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return 10 * MS + state % (20 * MS);
}

/* A job that comes while another one runs waits for it, and that counts. */
static void run_online(struct tenant *tenant, bool copies, double seconds, double count_at)
{
    static uint64_t took[JOBS_MOST];
    uint64_t at = now_ns() + 100 * MS;
    uint64_t from = count_at > 0 ? (uint64_t)(count_at * SECOND) : at + SECOND;
    uint64_t to = from + (uint64_t)(seconds * SECOND), now;
    unsigned int count = 0;
    bool counting = false;

    for (; at < to && count < JOBS_MOST; at += next_after()) {
        if ((now = now_ns()) < at)
            sleep_ns(at - now);
        if (copies)
            check(cuMemcpyHtoDAsync_v2(tenant->card, tenant->host, JOB_BYTES, tenant->main),
                  "a copy");
        launch(MS, tenant->main);
        wait_for(tenant->main);
        if (at < from)
            continue;
        if (!counting)
            puts("counting");
        counting = true;
        fflush(stdout);
        took[count++] = now_ns() - at;
    }
    if (!count)
        return;
    qsort(took, count, sizeof(*took), compare);
    printf("jobs %u\np50 %.1f\np99 %.1f\n", count, (double)took[count / 2] / US,
           (double)took[count * 99 / 100] / US);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        round_function round;
    } kinds[] = {{"overlap", overlap}, {"varying", varying}, {"pauses", pauses},
                 {"waits", waits},     {"parked", parked},   {"up", up},
                 {"down", down},       {"within", within}};
    struct tenant tenant = {0};
    round_function round = NULL;
    double seconds = argc > 2 ? atof(argv[2]) : 0, at = argc > 3 ? atof(argv[3]) : 0;

    if (argc > 4 || seconds <= 0)
        return 2;
    if (!strncmp(argv[1], "online", 6)) {
        open_card(&tenant);
        run_online(&tenant, !strcmp(argv[1], "online-copy"), seconds, at);
        return 0;
    }
    if (sscanf(argv[1], "%ux%u", &tenant.ns, &tenant.count) == 2)
        round = kernels;
    for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strcmp(argv[1], kinds[i].name))
            round = kinds[i].round;
    if (!round)
        return 2;
    open_card(&tenant);
    run_rounds(&tenant, round, seconds, at);
    return 0;
}
