// SPDX-License-Identifier: MIT
#include "client.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child has no driver, and its parent goes on. */
void check_forked_child(void)
{
    CUdeviceptr at;
    pid_t child;
    int status;

    begin_context();
    at = allocate_device(4096);
    child = fork();
    if (!child) {
        if (cuMemAlloc_v2(&at, 4096) != CUDA_ERROR_NOT_INITIALIZED)
            _exit(1);
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child && status == 0);
    ok(cuMemFree_v2(at));
    ok(cuMemFree_v2(allocate_device(4096)));
}

static void take_alarm(int number)
{
    (void)number;
}

/* A program may have a handler that interrupts calls of the system, as Python's have. */
void check_signals(void)
{
    static const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    static const struct sigaction interrupting = {.sa_handler = take_alarm};
    void *at;

    begin_context();
    sigaction(SIGALRM, &interrupting, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 300; i++) {
        ok(cuMemHostAlloc(&at, 1 << 20, 0));
        ok(cuMemFreeHost(at));
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

/* Holds memory until it is killed. */
void hold_memory(void)
{
    begin_context();
    allocate_device(32 * MIB);
    puts("holding");
    fflush(stdout);
    for (;;)
        pause();
}

/* Its worker ends under it: an error, soon, for this thread and the others. */
static void *use_until_lost(void *data)
{
    CUdeviceptr at;
    CUresult result;

    (void)data;
    do
        result = cuMemAlloc_v2(&at, 4096);
    while (result == CUDA_SUCCESS && (result = cuMemFree_v2(at)) == CUDA_SUCCESS);
    return (void *)(uintptr_t)result;
}

static void lose_worker(void)
{
    pthread_t other;
    void *result;

    must(!pthread_create(&other, NULL, use_until_lost, NULL));
    puts("holding");
    fflush(stdout);
    result = use_until_lost(NULL);
    must((uintptr_t)result == 719);
    pthread_join(other, &result);
    must((uintptr_t)result == 719 || (uintptr_t)result == CUDA_ERROR_INVALID_CONTEXT);
    is(cuCtxSynchronize(), 719);
}

void check_lost_worker(void)
{
    begin_context();
    lose_worker();
}

/* The same with 40 MiB of memory that both ends have. */
void hold_lent_memory(void)
{
    const size_t bytes = 2 * MIB;
    void *at;

    begin_context();
    for (unsigned int i = 0; i < 20; i++) {
        ok(cuMemHostAlloc(&at, bytes, 0));
        memset(at, 1, bytes);
    }
    lose_worker();
}

static void *write_all(void *data)
{
    uint64_t *at = data;

    for (size_t i = 0; i < MIB / sizeof(*at); i++)
        at[i] = i;
    return NULL;
}

/* The vGPU is unplugged: memory that both ends had is the program's alone then, a moment after the
 * first error. It has lost what was in it, and has no number that one could take for a result. */
void check_lost_memory(void)
{
    const volatile double *results;
    pthread_t other;
    uint64_t *at;

    begin_context();
    ok(cuMemHostAlloc((void **)&at, 3 * MIB, 0));
    memset(at, 0, 3 * MIB);
    lose_worker();
    results = (const volatile double *)at;
    while (!isnan(results[0]))
        usleep(1000);
    must(isnan(results[3 * MIB / sizeof(*results) - 1]));
    must(isnan(((const float *)at)[1]) && isnan(((const float *)at)[0]));
    must(!pthread_create(&other, NULL, write_all, at + MIB / sizeof(*at)));
    write_all(at);
    pthread_join(other, NULL);
    for (size_t i = 0; i < MIB / sizeof(*at); i++)
        must(at[i] == i && at[MIB / sizeof(*at) + i] == i);
    is(cuMemFreeHost(at), 719);
}

static sigjmp_buf back;

static void go_back(int number)
{
    siglongjmp(back, number);
}

static volatile char *map_nothing(void)
{
    return mmap(NULL, 4096, PROT_READ, MAP_SHARED, memfd_create("nothing", 0), 0);
}

static void handle_own_faults(void)
{
    const struct sigaction own = {.sa_handler = go_back};
    volatile char *at = map_nothing();

    must(sigaction(SIGBUS, &own, NULL) == 0);
    begin_context();
    if (!sigsetjmp(back, 1)) {
        must(*at);
        must(!"a fault");
    }
    if (!sigsetjmp(back, 1)) {
        raise(SIGBUS);
        must(!"a signal");
    }
    ok(cuMemFree_v2(allocate_device(4096)));
}

static int status_of(pid_t child)
{
    int status;

    must(waitpid(child, &status, 0) == child);
    return status;
}

/* A fault in memory of the program's own is the program's, as if the library was not there. */
void check_own_faults(void)
{
    volatile char *at = map_nothing();
    pid_t child = fork();

    if (!child) {
        handle_own_faults();
        exit(0);
    }
    must(status_of(child) == 0);
    begin_context();
    child = fork();
    if (!child)
        _exit(*at);
    must(WTERMSIG(status_of(child)) == SIGBUS);
    ok(cuMemFree_v2(allocate_device(4096)));
}

/* Fills that take the fake card 2 ms each, until it is killed: a line for each twelve. While it
 * waits for these, the next twelve are submitted. */
void fill_until_killed(void)
{
    size_t bytes = 2000000000;
    CUevent ends[2];
    CUdeviceptr at;

    begin_context();
    at = allocate_device(bytes);
    for (unsigned int i = 0; i < 2; i++)
        ok(cuEventCreate(&ends[i], 0));
    for (unsigned int turn = 0;; turn++) {
        for (unsigned int i = 0; i < 12; i++)
            ok(cuMemsetD32Async(at, 0, bytes / 4, NULL));
        ok(cuEventRecord(ends[turn % 2], NULL));
        if (!turn)
            continue;
        ok(cuEventSynchronize(ends[(turn - 1) % 2]));
        puts("filled");
        fflush(stdout);
    }
}

static int connect_to_guard(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("VGPU_CUDA_SOCKET");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

    strncpy(address.sun_path, path ? path : "/run/vgpu/cuda.sock", sizeof(address.sun_path) - 1);
    must(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Who keeps none of the protocol's rules: as many as there may be, and more; what is no message. */
void flood_guard(void)
{
    static char much[65536];
    int held[100];

    for (unsigned int i = 0; i < 100; i++)
        held[i] = connect_to_guard();
    for (unsigned int i = 0; i < 100; i++)
        close(held[i]);
    for (unsigned int i = 0; i < 300; i++) {
        int fd = connect_to_guard();

        for (unsigned int n = 0; fd >= 0 && n < i % 20; n++)
            send(fd, much, (i * 7919) % sizeof(much), MSG_NOSIGNAL);
        close(fd);
    }
}

/* Computes in rounds until it is told to end; what it has computed was right. */
static volatile sig_atomic_t is_told;

static void note_signal(int number)
{
    (void)number;
    is_told = 1;
}

void compute_until_told(void)
{
    unsigned int word = 0;
    CUdeviceptr at;

    signal(SIGTERM, note_signal);
    begin_context();
    at = allocate_device(4096);
    puts("holding");
    fflush(stdout);
    do {
        ok(cuMemsetD32Async(at, ++word, 1, NULL));
        must(read_word(at) == word);
        usleep(10000);
    } while (!is_told);
    ok(cuMemFree_v2(at));
}

/* A worker that is no member of its slice has no context, and so no memory. */
void check_no_arbiter(void)
{
    CUcontext context;
    CUdevice device;

    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    is(cuCtxCreate_v2(&context, 0, device), 802);
}

/* No CUDA for this program: there is no worker for it. */
void check_no_device(void)
{
    is(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

/* The host can't keep its GPU out of the worker's memory. */
void check_unusable_gpu(void)
{
    is(cuInit(0), 802);
}
