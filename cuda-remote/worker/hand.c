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

static CUresult carry_out(struct request *request, bool *is_known)
{
    switch (request->number) {
    case CALL_cuLaunchKernel:
    case CALL_cuLaunchKernel_ptsz:
    case CALL_cuLaunchKernelEx:
    case CALL_cuLaunchKernelEx_ptsz:
    case CALL_cuLaunchCooperativeKernel:
    case CALL_cuLaunchCooperativeKernel_ptsz:
        return hand_launch(request);
    case HAND_LAYOUT:
        return hand_layout(request);
    case CALL_cuModuleLoadData:
    case CALL_cuModuleLoadDataEx:
    case CALL_cuModuleLoadFatBinary:
    case CALL_cuLibraryLoadData:
        return hand_load(request);
    case CALL_cuLinkCreate_v2:
    case CALL_cuLinkAddData_v2:
    case CALL_cuLinkComplete:
    case CALL_cuLinkDestroy:
    case HAND_LINKED:
        return hand_link(request);
    case CALL_cuLaunchHostFunc:
    case CALL_cuLaunchHostFunc_ptsz:
    case CALL_cuLaunchHostFunc_v2:
    case CALL_cuLaunchHostFunc_v2_ptsz:
    case CALL_cuStreamAddCallback:
    case CALL_cuStreamAddCallback_ptsz:
    case CALL_cuUserObjectCreate:
        return hand_callback(request);
    case HAND_CALLED:
        return hand_called(request);
    case CALL_cuMemHostAlloc:
    case CALL_cuMemFreeHost:
        return hand_host_memory(request);
    case CALL_cuMemcpy2D_v2:
    case CALL_cuMemcpy2D_v2_ptds:
    case CALL_cuMemcpy2DUnaligned_v2:
    case CALL_cuMemcpy2DUnaligned_v2_ptds:
    case CALL_cuMemcpy2DAsync_v2:
    case CALL_cuMemcpy2DAsync_v2_ptsz:
    case CALL_cuMemcpy3D_v2:
    case CALL_cuMemcpy3D_v2_ptds:
    case CALL_cuMemcpy3DAsync_v2:
    case CALL_cuMemcpy3DAsync_v2_ptsz:
    case CALL_cuMemcpy3DPeer:
    case CALL_cuMemcpy3DPeer_ptds:
    case CALL_cuMemcpy3DPeerAsync:
    case CALL_cuMemcpy3DPeerAsync_ptsz:
        return hand_copy(request);
    case CALL_cuStreamGetCaptureInfo_v2:
    case CALL_cuStreamGetCaptureInfo_v2_ptsz:
    case CALL_cuStreamGetCaptureInfo_v3:
    case CALL_cuStreamGetCaptureInfo_v3_ptsz:
        return hand_capture(request);
    case CALL_cuGraphAddKernelNode:
    case CALL_cuGraphAddKernelNode_v2:
    case CALL_cuGraphAddMemcpyNode:
    case CALL_cuGraphAddHostNode:
    case CALL_cuGraphKernelNodeSetParams:
    case CALL_cuGraphKernelNodeSetParams_v2:
    case CALL_cuGraphHostNodeSetParams:
    case CALL_cuGraphMemcpyNodeSetParams:
    case CALL_cuGraphExecKernelNodeSetParams:
    case CALL_cuGraphExecKernelNodeSetParams_v2:
    case CALL_cuGraphExecHostNodeSetParams:
    case CALL_cuGraphExecMemcpyNodeSetParams:
        return hand_node(request);
    case CALL_cuGraphKernelNodeGetParams:
    case CALL_cuGraphKernelNodeGetParams_v2:
    case CALL_cuGraphHostNodeGetParams:
        return hand_node_get(request);
    case CALL_cuPointerGetAttribute:
    case CALL_cuPointerGetAttributes:
    case CALL_cuPointerSetAttribute:
        return hand_pointer(request);
    case CALL_cuFuncGetName:
        return name_of_object(request, OBJECT_CUfunction);
    case CALL_cuKernelGetName:
        return name_of_object(request, OBJECT_CUkernel);
    case CALL_cuGetErrorName:
    case CALL_cuGetErrorString:
        return text_of_error(request);
    default:
        *is_known = false;
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

bool hand_carry_out(struct request *request)
{
    bool is_known = true;

    request->makes_objects = true;
    request->result = carry_out(request, &is_known);
    return is_known;
}
