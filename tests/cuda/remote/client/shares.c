// SPDX-License-Identifier: MIT
/* Memory that goes to another program; and what the driver tells functions of the program. */
#include "client.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARED_FD 9
#define BYTES     (2u << 20)

typedef struct CUmemHandle_st *Memory;

CUresult cuMemCreate(Memory *made, size_t bytes, const CUmemAllocationProp *of,
                     unsigned long long flags);
CUresult cuMemRelease(Memory memory);
CUresult cuMemRetainAllocationHandle(Memory *to, CUdeviceptr at);
CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t align, CUdeviceptr wish,
                             unsigned long long flags);
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, Memory memory,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes);
CUresult cuMemExportToShareableHandle(void *to, Memory memory, unsigned int type,
                                      unsigned long long flags);
CUresult cuMemImportFromShareableHandle(Memory *memory, void *os, unsigned int type);
CUresult cuMemPoolExportToShareableHandle(void *to, CUmemoryPool pool, unsigned int type,
                                          unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *os, unsigned int type,
                                            unsigned long long flags);
CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags);
CUresult cuLogsRegisterCallback(void (*function)(void *, unsigned int, char *, size_t), void *user,
                                void **made);
CUresult cuLogsUnregisterCallback(void *registration);
CUresult cuDeviceRegisterAsyncNotification(CUdevice device,
                                           void (*function)(void *, void *, void *), void *user,
                                           void **made);
CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, void *registration);

#define OS(fd) ((void *)(intptr_t)(fd))

/* The other program, which has the file of the first one. */
void import_shared_memory(void)
{
    Memory memory;

    begin_context();
    ok(cuMemImportFromShareableHandle(&memory, OS(SHARED_FD), 1));
    ok(cuMemRelease(memory));
    is(cuMemRelease(memory), CUDA_ERROR_INVALID_VALUE);
}

static void run_other_program(int fd)
{
    pid_t pid = fork();
    int status;

    must(pid >= 0);
    if (pid == 0) {
        if (dup2(fd, SHARED_FD) == SHARED_FD)
            execl("/proc/self/exe", "client", "shared", (char *)NULL);
        _exit(3);
    }
    must(waitpid(pid, &status, 0) == pid && status == 0);
}

static int export_memory(Memory memory)
{
    int fd = -1;

    ok(cuMemExportToShareableHandle(&fd, memory, 1, 0));
    must(fd >= 0);
    return fd;
}

static void share_memory(void)
{
    CUmemAllocationProp of = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = 1}};
    Memory memory, same, other;
    CUdeviceptr at;
    int fd, none = open("/dev/null", O_RDONLY | O_CLOEXEC);

    of.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    ok(cuMemCreate(&memory, BYTES, &of, 0));
    fd = export_memory(memory);
    ok(cuMemImportFromShareableHandle(&other, OS(fd), 1));
    ok(cuMemRelease(other));
    run_other_program(fd);
    is(cuMemExportToShareableHandle(&none, memory, 8, 0), CUDA_ERROR_NOT_SUPPORTED);
    is(cuMemExportToShareableHandle(NULL, memory, 1, 0), CUDA_ERROR_INVALID_VALUE);
    is(cuMemExportToShareableHandle(&none, (Memory)&of, 1, 0), CUDA_ERROR_INVALID_VALUE);
    is(cuMemImportFromShareableHandle(&other, OS(none), 1), CUDA_ERROR_INVALID_VALUE);
    is(cuMemImportFromShareableHandle(&other, OS(-1), 1), CUDA_ERROR_INVALID_VALUE);
    is(cuMemImportFromShareableHandle(&other, OS(fd), 8), CUDA_ERROR_NOT_SUPPORTED);
    ok(cuMemAddressReserve(&at, BYTES, 0, 0, 0));
    ok(cuMemMap(at, BYTES, 0, memory, 0));
    ok(cuMemRetainAllocationHandle(&same, at));
    must(same == memory);
    ok(cuMemRelease(memory));
    ok(cuMemImportFromShareableHandle(&other, OS(fd), 1));
    ok(cuMemRelease(other));
    ok(cuMemRelease(same));
    is(cuMemImportFromShareableHandle(&other, OS(fd), 1), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemUnmap(at, BYTES));
}

/* What the program makes up is no token, though it looks like one. */
static void refuse_wrong_tokens(void)
{
    char path[] = "/tmp/vgpu-token-XXXXXX";
    uint64_t token[5] = {0x6e656b6f74756376, 1, 2, 3, 4};
    int fd = mkstemp(path);
    CUmemoryPool pool;
    Memory memory;

    must(fd >= 0 && write(fd, token, sizeof(token)) == sizeof(token));
    unlink(path);
    is(cuMemImportFromShareableHandle(&memory, OS(fd), 1), CUDA_ERROR_INVALID_VALUE);
    is(cuMemPoolImportFromShareableHandle(&pool, OS(fd), 1, 0), CUDA_ERROR_INVALID_VALUE);
    is(cuMemPoolExportToShareableHandle(&fd, NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

static void print_graph(void)
{
    char path[] = "/tmp/vgpu-dot-XXXXXX", text[64] = "";
    int fd = mkstemp(path);
    CUgraph graph;

    must(fd >= 0);
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphDebugDotPrint(graph, path, 1));
    must(read(fd, text, sizeof(text) - 1) > 0 && !strcmp(text, "digraph of 1 {}\n"));
    is(cuGraphDebugDotPrint(graph, "/nonexistent/dot", 1), CUDA_ERROR_INVALID_VALUE);
    is(cuGraphDebugDotPrint((CUgraph)path, path, 1), CUDA_ERROR_INVALID_VALUE);
    is(cuGraphDebugDotPrint(graph, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    unlink(path);
}

static unsigned int logged, notified;
static void *notified_by;

static void take_log(void *user, unsigned int grave, char *text, size_t bytes)
{
    must(user == &logged && grave == 1 && bytes == 8 && !strcmp(text, "an error"));
    logged++;
}

static void take_notice(void *what, void *user, void *registration)
{
    const struct {
        unsigned int kind;
        uint64_t value;
    } *notice = what;

    must(user == &notified && notice->kind == 1 && notice->value == 4711);
    notified++;
    notified_by = registration;
}

static void be_told(void)
{
    void *log, *notice;

    ok(cuLogsRegisterCallback(take_log, &logged, &log));
    ok(cuDeviceRegisterAsyncNotification(0, take_notice, &notified, &notice));
    is(cuDeviceRegisterAsyncNotification(5, take_notice, &notified, &log),
       CUDA_ERROR_INVALID_DEVICE);
    is(cuLogsRegisterCallback(NULL, &logged, &log), CUDA_ERROR_INVALID_VALUE);
    is(cuLogsRegisterCallback(take_log, &logged, NULL), CUDA_ERROR_INVALID_VALUE);
    ok(cuLogsUnregisterCallback(log));
    ok(cuDeviceUnregisterAsyncNotification(0, notice));
    must(logged == 1 && notified == 1 && notified_by == notice);
    is(cuLogsUnregisterCallback(log), CUDA_ERROR_INVALID_VALUE);
    is(cuDeviceUnregisterAsyncNotification(0, log), CUDA_ERROR_INVALID_VALUE);
}

void check_shares(void)
{
    begin_context();
    share_memory();
    refuse_wrong_tokens();
    print_graph();
    be_told();
}
