// SPDX-License-Identifier: MIT
#include "fake.h"

#include <stddef.h>

/* Names that no table has: of a driver newer than the door. */
CUresult cuNewThing_v9(void);
CUresult cuMemNewAlloc(CUdeviceptr *dptr, size_t bytes);
CUresult cuMemAlloc_v9(int how, CUdeviceptr *dptr, size_t bytes);
CUresult cuMemcpyBatchAsync_v9(int how);
CUresult cuGetProcAddress_v9(int how);

CUresult cuNewThing_v9(void)
{
    return (CUresult)77;
}

CUresult cuMemNewAlloc(CUdeviceptr *dptr, size_t bytes)
{
    (void)dptr;
    (void)bytes;
    return (CUresult)78;
}

CUresult cuMemAlloc_v9(int how, CUdeviceptr *dptr, size_t bytes)
{
    (void)how;
    return cuMemNewAlloc(dptr, bytes);
}

CUresult cuMemcpyBatchAsync_v9(int how)
{
    return (CUresult)how;
}

CUresult cuGetProcAddress_v9(int how)
{
    return (CUresult)(how + 1);
}

/* The one argument of a test that is in a vector register. */
_Thread_local float fake_float;

CUresult cuParamSetf(void *function, int offset, float value)
{
    ENTER();
    (void)function;
    (void)offset;
    fake_float = value;
    return CUDA_SUCCESS;
}
