// SPDX-License-Identifier: MIT
/*
 * Memory and pools that go to other programs of the slice: what a program passes on is a file with
 * a token in it, which any way of passing on descriptors does for.
 */
#include "remote.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* -1: no such file can be had. */
static int write_token(const struct hand_token *token)
{
    int fd = (int)syscall(SYS_memfd_create, "vgpu-cuda-share", MFD_CLOEXEC);

    if (fd >= 0 && write(fd, token, sizeof(*token)) != (ssize_t)sizeof(*token)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static CUresult export_object(unsigned int number, int *to, const void *object, unsigned int type,
                              unsigned long long flags)
{
    const struct hand_share head = {
        .object = object_to_number((uintptr_t)object), .type = type, .flags = flags};
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};
    struct hand_token token = {0};
    CUresult result = to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    int fd;

    exchange_out(&ask, &token, sizeof(token));
    if (result == CUDA_SUCCESS)
        result = exchange_run(&ask);
    if (result != CUDA_SUCCESS)
        return result;
    fd = write_token(&token);
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *to = fd;
    return CUDA_SUCCESS;
}

static CUresult import_object(unsigned int number, void **made, const void *os, unsigned int type,
                              unsigned long long flags)
{
    struct hand_share head = {.type = type, .flags = flags};
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};
    CUresult result;

    if (!made ||
        pread((int)(intptr_t)os, &head.token, sizeof(head.token), 0) !=
            (ssize_t)sizeof(head.token) ||
        head.token.magic != HAND_TOKEN_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    result = exchange_run(&ask);
    if (result == CUDA_SUCCESS)
        *made = (void *)(uintptr_t)object_of_number(ask.extra);
    return result;
}

EXPORT CUresult cuMemExportToShareableHandle(void *to, void *memory, unsigned int type,
                                             unsigned long long flags);
CUresult cuMemExportToShareableHandle(void *to, void *memory, unsigned int type,
                                      unsigned long long flags)
{
    return export_object(CALL_cuMemExportToShareableHandle, to, memory, type, flags);
}

EXPORT CUresult cuMemPoolExportToShareableHandle(void *to, void *pool, unsigned int type,
                                                 unsigned long long flags);
CUresult cuMemPoolExportToShareableHandle(void *to, void *pool, unsigned int type,
                                          unsigned long long flags)
{
    return export_object(CALL_cuMemPoolExportToShareableHandle, to, pool, type, flags);
}

EXPORT CUresult cuMemImportFromShareableHandle(void **memory, void *os, unsigned int type);
CUresult cuMemImportFromShareableHandle(void **memory, void *os, unsigned int type)
{
    return import_object(CALL_cuMemImportFromShareableHandle, memory, os, type, 0);
}

EXPORT CUresult cuMemPoolImportFromShareableHandle(void **pool, void *os, unsigned int type,
                                                   unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(void **pool, void *os, unsigned int type,
                                            unsigned long long flags)
{
    return import_object(CALL_cuMemPoolImportFromShareableHandle, pool, os, type, flags);
}
