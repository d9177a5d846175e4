// SPDX-License-Identifier: MIT
#include "client.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What does not exist any more, or never did, is an error and nothing else. */
void check_ended_objects(void)
{
    CUcontext context = begin_context(), current;
    CUstream stream, other;
    CUevent event, late;
    CUdevice device;
    unsigned int type = 0;
    CUdeviceptr at;

    ok(cuCtxGetCurrent(&current));
    must(current == context);
    ok(cuStreamCreate(&stream, 0));
    ok(cuEventCreate(&event, 0));
    ok(cuEventRecord(event, stream));
    ok(cuEventSynchronize(event));
    is(cuEventRecord((CUevent)stream, stream), CUDA_ERROR_INVALID_HANDLE);
    is(cuStreamSynchronize((CUstream)event), CUDA_ERROR_INVALID_HANDLE);
    is(cuStreamSynchronize((CUstream)&device), CUDA_ERROR_INVALID_HANDLE);
    ok(cuStreamDestroy_v2(stream));
    is(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    ok(cuStreamCreate(&other, 0));
    ok(cuStreamSynchronize(other));
    /* What was the context's is gone with it. */
    ok(cuEventCreate(&late, 0));
    ok(cuCtxDestroy_v2(context));
    is(cuEventDestroy_v2(late), CUDA_ERROR_INVALID_HANDLE);
    is(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuDeviceGet(&device, 0));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSetCurrent(context));
    ok(cuEventCreate(&late, 0));
    ok(cuDevicePrimaryCtxRelease_v2(device));
    is(cuEventDestroy_v2(late), CUDA_ERROR_INVALID_HANDLE);
    /* Addresses that are nobody's, or this process's own. */
    begin_context();
    at = allocate_device(4096);
    ok(cuPointerGetAttribute(&type, 2, at));
    must(type == 2);
    is(cuMemcpyHtoD_v2(at, text_of_many, sizeof(text_of_many)), CUDA_ERROR_INVALID_VALUE);
    is(cuMemcpyHtoD_v2((uintptr_t)&type, &device, 4), CUDA_ERROR_INVALID_VALUE);
    is(cuMemsetD8_v2(0x7f0000000000, 0, 4096), CUDA_ERROR_INVALID_VALUE);
    is(cuMemsetD8_v2(at, 0, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
}

/* What is asked before anything is computed. */
void check_facts(void)
{
    CUdriverProcAddressQueryResult status;
    char name[64], log[4096] = "";
    unsigned int options[] = {5, 6};
    void *values[] = {log, (void *)sizeof(log)};
    const char *is_called;
    CUmodule module;
    void *found;
    int version;

    ok(cuDriverGetVersion(&version));
    must(version >= 12000);
    begin_context();
    ok(cuDeviceGetName(name, sizeof(name), 0));
    must(*name);
    ok(cuFuncGetName(&is_called, load_function(&module, "axpy")));
    must(!strcmp(is_called, "axpy"));
    ok(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &is_called));
    must(!strcmp(is_called, "CUDA_ERROR_OUT_OF_MEMORY"));
    ok(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status));
    must(found == (void *)(uintptr_t)cuMemAlloc_v2 && status == CU_GET_PROC_ADDRESS_SUCCESS);
    ok(cuGetProcAddress_v2("cuNothing", &found, 12000, 0, &status));
    must(!found && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ok(cuGetProcAddress_v2("cuLibraryLoadData", &found, 11000, 0, &status));
    must(!found && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    must(cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_80\nnonsense", 2, options, values) !=
         CUDA_SUCCESS);
}
