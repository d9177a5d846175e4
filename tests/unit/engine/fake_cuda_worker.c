// SPDX-License-Identifier: MIT
#include "fake_cuda_worker.h"

#include "cuda_worker.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* More than any process can have, so nobody is killed. */
#define NO_PROCESS 0x7ffffff0

int fake_cuda_worker = -1;

void fake_cuda_worker_end(void)
{
    if (fake_cuda_worker >= 0)
        close(fake_cuda_worker);
    fake_cuda_worker = -1;
}

GStrv cuda_worker_environment(void)
{
    return g_new0(char *, 1);
}

void cuda_worker_become(const struct cuda_worker *worker G_GNUC_UNUSED,
                        char **environment G_GNUC_UNUSED, pid_t parent G_GNUC_UNUSED,
                        int fd G_GNUC_UNUSED)
{
    abort();
}

int cuda_worker_start(const struct cuda_worker *worker G_GNUC_UNUSED,
                      char **environment G_GNUC_UNUSED, pid_t *pid)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    fake_cuda_worker_end();
    fake_cuda_worker = ends[1];
    *pid = NO_PROCESS;
    return ends[0];
}
