// SPDX-License-Identifier: MIT
/* A graph as text: the driver writes a file, which has no name in any folder. */
#include "hand.h"
#include "worker.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "numbers.h"

static CUresult give_file(struct request *request, int fd)
{
    struct stat of;
    uint8_t *to;

    if (fstat(fd, &of) < 0 || of.st_size > HAND_DOT_MOST)
        return CUDA_ERROR_NOT_SUPPORTED;
    request->out_most = HAND_DOT_MOST;
    to = request_answer(request, (size_t)of.st_size);
    if (!to || pread(fd, to, (size_t)of.st_size, 0) != of.st_size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    request->extra = (uint64_t)of.st_size;
    return CUDA_SUCCESS;
}

CUresult hand_dot(struct request *request)
{
    CUresult (*print)(void *, const char *, unsigned int) = driver_function(request->number);
    const struct hand_dot *head = (const void *)request->head;
    char path[64];
    CUresult result;
    void *graph;
    int fd;

    /* What does not fit into the answer of the channel is in memory that the program has given. */
    if (request->head_bytes < sizeof(*head) || !print || !(request->flags & RECORD_BULK))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!object_find(OBJECT_CUgraph, head->graph, &graph) || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    fd = memfd_create("vgpu-cuda-dot", MFD_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    result = print(graph, path, head->flags);
    if (result == CUDA_SUCCESS)
        result = give_file(request, fd);
    close(fd);
    return result;
}
