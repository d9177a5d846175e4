/* SPDX-License-Identifier: MIT */
/* The driver's functions that the client calls, as its library exports them. */
#ifndef REMOTE_CLIENT_DRIVER_H
#define REMOTE_CLIENT_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

CUresult cuInit(unsigned int flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetName(char *name, int bytes, CUdevice device);
CUresult cuDriverGetVersion(int *version);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr at);
CUresult cuMemGetInfo_v2(size_t *left, size_t *total);
CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned int flags);
CUresult cuMemFreeHost(void *at);
CUresult cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t count);
CUresult cuMemsetD32Async(CUdeviceptr at, unsigned int value, size_t count, CUstream stream);
CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned int flags);
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy);
CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *parameters);
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, void *result);
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                             size_t count);
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const void *parameters, CUcontext context);
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, void *operations,
                               unsigned int flags);
CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const void *parameters);
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, void *parameters);
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const void *parameters);
CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                            size_t count, const void *parameters);
CUresult cuGraphHostNodeGetParams(CUgraphNode node, void *parameters);
CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const CUDA_MEMCPY3D *copy, CUcontext context);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, unsigned int *status, uint64_t *id,
                                   CUgraph *graph, const CUgraphNode **nodes, size_t *count);
CUresult cuTexObjectCreate(unsigned long long *texture, const void *resource,
                           const void *texture_of, const void *view);
CUresult cuTexObjectDestroy(unsigned long long texture);
CUresult cuPointerGetAttribute(void *data, unsigned int attribute, CUdeviceptr at);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            unsigned int *options, void **values);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name);
CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                        CUstream stream, void **parameters, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
                                   unsigned int gz, unsigned int bx, unsigned int by,
                                   unsigned int bz, unsigned int shared, CUstream stream,
                                   void **parameters);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data,
                             unsigned int flags);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetProcAddress_v2(const char *name, void **to, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status);
CUresult cuStreamBeginCapture_v2(CUstream stream, unsigned int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphNodeGetType(CUgraphNode node, unsigned int *type);

#endif
