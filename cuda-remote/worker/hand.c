// SPDX-License-Identifier: MIT
/* Which function carries out a request whose form is not in its signature; and texts, which the
 * driver keeps and the program gets a copy of. */
#include "hand.h"
#include "worker.h"

#include <string.h>

#include "numbers.h"

static CUresult give_text(struct request *request, CUresult result, const char *text)
{
    char *to;

    if (result != CUDA_SUCCESS || !text)
        return result;
    request->extra = strnlen(text, HAND_NAME_MOST - 1) + 1;
    to = request_answer(request, request->extra);
    if (to)
        memcpy(to, text, request->extra - 1);
    return result;
}

/* Of a function or kernel. */
static CUresult name_of_object(struct request *request, unsigned int type)
{
    CUresult (*get)(const char **, void *) = driver_function(request->number);
    const struct hand_object *head = (const void *)request->head;
    const char *name = NULL;
    CUresult result;
    void *real;

    if (request->head_bytes < sizeof(*head) || !get)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!object_find(type, head->object, &real) || !real)
        return CUDA_ERROR_INVALID_HANDLE;
    result = get(&name, real);
    return give_text(request, result, name);
}

static CUresult text_of_error(struct request *request)
{
    CUresult (*get)(CUresult, const char **) = driver_function(request->number);
    const struct hand_object *head = (const void *)request->head;
    const char *text = NULL;
    CUresult result;

    if (request->head_bytes < sizeof(*head) || !get)
        return CUDA_ERROR_NOT_SUPPORTED;
    result = get((CUresult)head->object, &text);
    return give_text(request, result, text);
}

static CUresult name_of_function(struct request *request)
{
    return name_of_object(request, OBJECT_CUfunction);
}

static CUresult name_of_kernel(struct request *request)
{
    return name_of_object(request, OBJECT_CUkernel);
}

typedef CUresult (*hand_function)(struct request *request);

static const hand_function by_call[CALL_NUMBERS] = {
    [CALL_cuLaunchKernel] = hand_launch,
    [CALL_cuLaunchKernel_ptsz] = hand_launch,
    [CALL_cuLaunchKernelEx] = hand_launch,
    [CALL_cuLaunchKernelEx_ptsz] = hand_launch,
    [CALL_cuLaunchCooperativeKernel] = hand_launch,
    [CALL_cuLaunchCooperativeKernel_ptsz] = hand_launch,
    [CALL_cuOccupancyMaxActiveClusters] = hand_occupancy,
    [CALL_cuOccupancyMaxPotentialClusterSize] = hand_occupancy,
    [CALL_cuModuleLoadData] = hand_load,
    [CALL_cuModuleLoadDataEx] = hand_load,
    [CALL_cuModuleLoadFatBinary] = hand_load,
    [CALL_cuLibraryLoadData] = hand_load,
    [CALL_cuLinkCreate_v2] = hand_link,
    [CALL_cuLinkAddData_v2] = hand_link,
    [CALL_cuLinkComplete] = hand_link,
    [CALL_cuLinkDestroy] = hand_link,
    [CALL_cuLaunchHostFunc] = hand_callback,
    [CALL_cuLaunchHostFunc_ptsz] = hand_callback,
    [CALL_cuLaunchHostFunc_v2] = hand_callback,
    [CALL_cuLaunchHostFunc_v2_ptsz] = hand_callback,
    [CALL_cuStreamAddCallback] = hand_callback,
    [CALL_cuStreamAddCallback_ptsz] = hand_callback,
    [CALL_cuUserObjectCreate] = hand_callback,
    [CALL_cuDeviceRegisterAsyncNotification] = hand_callback,
    [CALL_cuLogsRegisterCallback] = hand_callback,
    [CALL_cuMemExportToShareableHandle] = hand_export,
    [CALL_cuMemPoolExportToShareableHandle] = hand_export,
    [CALL_cuMemImportFromShareableHandle] = hand_import,
    [CALL_cuMemPoolImportFromShareableHandle] = hand_import,
    [CALL_cuGraphDebugDotPrint] = hand_dot,
    [CALL_cuMemHostAlloc] = hand_host_memory,
    [CALL_cuMemFreeHost] = hand_host_memory,
    [CALL_cuMemcpy2D_v2] = hand_copy,
    [CALL_cuMemcpy2D_v2_ptds] = hand_copy,
    [CALL_cuMemcpy2DUnaligned_v2] = hand_copy,
    [CALL_cuMemcpy2DUnaligned_v2_ptds] = hand_copy,
    [CALL_cuMemcpy2DAsync_v2] = hand_copy,
    [CALL_cuMemcpy2DAsync_v2_ptsz] = hand_copy,
    [CALL_cuMemcpy3D_v2] = hand_copy,
    [CALL_cuMemcpy3D_v2_ptds] = hand_copy,
    [CALL_cuMemcpy3DAsync_v2] = hand_copy,
    [CALL_cuMemcpy3DAsync_v2_ptsz] = hand_copy,
    [CALL_cuMemcpy3DPeer] = hand_copy,
    [CALL_cuMemcpy3DPeer_ptds] = hand_copy,
    [CALL_cuMemcpy3DPeerAsync] = hand_copy,
    [CALL_cuMemcpy3DPeerAsync_ptsz] = hand_copy,
    [CALL_cuStreamGetCaptureInfo_v2] = hand_capture,
    [CALL_cuStreamGetCaptureInfo_v2_ptsz] = hand_capture,
    [CALL_cuStreamGetCaptureInfo_v3] = hand_capture,
    [CALL_cuStreamGetCaptureInfo_v3_ptsz] = hand_capture,
    [CALL_cuGraphAddKernelNode] = hand_node,
    [CALL_cuGraphAddKernelNode_v2] = hand_node,
    [CALL_cuGraphAddMemcpyNode] = hand_node,
    [CALL_cuGraphAddHostNode] = hand_node,
    [CALL_cuGraphKernelNodeSetParams] = hand_node,
    [CALL_cuGraphKernelNodeSetParams_v2] = hand_node,
    [CALL_cuGraphHostNodeSetParams] = hand_node,
    [CALL_cuGraphMemcpyNodeSetParams] = hand_node,
    [CALL_cuGraphExecKernelNodeSetParams] = hand_node,
    [CALL_cuGraphExecKernelNodeSetParams_v2] = hand_node,
    [CALL_cuGraphExecHostNodeSetParams] = hand_node,
    [CALL_cuGraphExecMemcpyNodeSetParams] = hand_node,
    [CALL_cuGraphAddBatchMemOpNode] = hand_node,
    [CALL_cuGraphBatchMemOpNodeSetParams] = hand_node,
    [CALL_cuGraphExecBatchMemOpNodeSetParams] = hand_node,
    [CALL_cuGraphAddMemAllocNode] = hand_node,
    [CALL_cuGraphAddNode] = hand_node,
    [CALL_cuGraphBatchMemOpNodeGetParams] = hand_node_get,
    [CALL_cuGraphMemAllocNodeGetParams] = hand_node_get,
    [CALL_cuGraphKernelNodeGetParams] = hand_node_get,
    [CALL_cuGraphKernelNodeGetParams_v2] = hand_node_get,
    [CALL_cuGraphHostNodeGetParams] = hand_node_get,
    [CALL_cuPointerGetAttribute] = hand_pointer,
    [CALL_cuPointerGetAttributes] = hand_pointer,
    [CALL_cuPointerSetAttribute] = hand_pointer,
    [CALL_cuFuncGetName] = name_of_function,
    [CALL_cuKernelGetName] = name_of_kernel,
    [CALL_cuGetErrorName] = text_of_error,
    [CALL_cuGetErrorString] = text_of_error,
};

/* Those that are no entry point's. */
static const hand_function by_hand[] = {
    [HAND_LAYOUT - HAND_LAYOUT] = hand_layout,
    [HAND_LINKED - HAND_LAYOUT] = hand_link,
    [HAND_CALLED - HAND_LAYOUT] = hand_called,
    [HAND_OUTPUT - HAND_LAYOUT] = hand_output,
};

bool hand_carry_out(struct request *request)
{
    unsigned int number = request->number;
    hand_function carry_out = NULL;

    if (number < CALL_NUMBERS)
        carry_out = by_call[number];
    else if (number >= HAND_LAYOUT && number - HAND_LAYOUT < sizeof(by_hand) / sizeof(by_hand[0]))
        carry_out = by_hand[number - HAND_LAYOUT];
    if (!carry_out)
        return false;
    request->makes_objects = true;
    request->result = carry_out(request);
    return true;
}
