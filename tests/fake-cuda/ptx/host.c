// SPDX-License-Identifier: MIT
/* Memory of the host that the driver allocates or locks, which kernels may reach at its address. */
#include "content.h"

#include "../card.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

static CUresult allocate(void **made, size_t bytes)
{
    if (!made || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *made = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (!*made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(*made, 0, bytes);
    content_lock(*made, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **made, size_t bytes, unsigned int flags)
{
    ENTER();
    (void)flags;
    return allocate(made, bytes);
}

CUresult cuMemAllocHost_v2(void **made, size_t bytes)
{
    ENTER();
    return allocate(made, bytes);
}

CUresult cuMemFreeHost(void *at)
{
    ENTER();
    if (content_find(NULL, (uintptr_t)at).host != at)
        return CUDA_ERROR_INVALID_VALUE;
    content_unlock(at);
    free(at);
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *at)
{
    ENTER();
    content_unlock(at);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *at, unsigned int flags)
{
    ENTER();
    (void)flags;
    if (!device || !at)
        return CUDA_ERROR_INVALID_VALUE;
    *device = (uintptr_t)at + card_setting("FAKE_CUDA_HOST_OFFSET", 0);
    return CUDA_SUCCESS;
}
