// SPDX-License-Identifier: MIT
/* Memory that another program opens by its handle. The fake card gives that other bytes. */
#include "client.h"

#include <sys/wait.h>
#include <unistd.h>

#define HANDLE_FD 9
#define BYTES     (2u << 20)

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr at);

/* The other program, which reads the handle from the first one. */
void open_memory_of_other(void)
{
    CUipcMemHandle handle;
    CUdeviceptr at;

    must(read(HANDLE_FD, &handle, sizeof(handle)) == (ssize_t)sizeof(handle));
    begin_context();
    ok(cuIpcOpenMemHandle_v2(&at, handle, 1));
    read_word(at);
    ok(cuIpcCloseMemHandle(at));
}

void check_ipc(void)
{
    CUipcMemHandle handle;
    CUdeviceptr at;
    int pair[2], status;
    pid_t pid;

    begin_context();
    at = allocate_device(BYTES);
    ok(cuMemsetD8_v2(at, 0x5a, BYTES));
    ok(cuIpcGetMemHandle(&handle, at));
    must(pipe(pair) == 0);
    must(write(pair[1], &handle, sizeof(handle)) == (ssize_t)sizeof(handle));
    pid = fork();
    must(pid >= 0);
    if (!pid) {
        if (dup2(pair[0], HANDLE_FD) == HANDLE_FD)
            execl("/proc/self/exe", "client", "ipc-open", (char *)NULL);
        _exit(3);
    }
    must(waitpid(pid, &status, 0) == pid && status == 0);
    ok(cuMemFree_v2(at));
}
