// SPDX-License-Identifier: MIT
/* Objects that work for an engine is recorded with. */
#include <stdio.h>
#include <string.h>

#include "engines.h"
#include "governor_protocol.h"

/* False: the slice may not use the @engine, or one of those; standard error says so. */
static bool may_use(const struct layer_device *device, uint32_t engine, const char *what)
{
    if ((governor_member_engines(device->member) & engine) == engine)
        return true;
    fprintf(stderr,
            "vgpu-governor: cannot create a %s: the slice may not use its engine (\"vgpuctl slice "
            "set\" with "
            "--engines changes that)\n",
            what);
    return false;
}

static VkResult refuse_all(void *handles, size_t size)
{
    memset(handles, 0, size);
    return VK_ERROR_INITIALIZATION_FAILED;
}

VKAPI_ATTR VkResult VKAPI_CALL
layer_CreateComputePipelines(VkDevice handle, VkPipelineCache cache, uint32_t count,
                             const VkComputePipelineCreateInfo *infos,
                             const VkAllocationCallbacks *allocator, VkPipeline *pipelines)
{
    struct layer_device *device = device_of(handle);

    if (!may_use(device, GOVERNOR_ENGINE_COMPUTE, "compute pipeline"))
        return refuse_all(pipelines, count * sizeof(*pipelines));
    return device->next.CreateComputePipelines(handle, cache, count, infos, allocator, pipelines);
}

VKAPI_ATTR VkResult VKAPI_CALL
layer_CreateGraphicsPipelines(VkDevice handle, VkPipelineCache cache, uint32_t count,
                              const VkGraphicsPipelineCreateInfo *infos,
                              const VkAllocationCallbacks *allocator, VkPipeline *pipelines)
{
    struct layer_device *device = device_of(handle);

    if (!may_use(device, GOVERNOR_ENGINE_GRAPHICS, "graphics pipeline"))
        return refuse_all(pipelines, count * sizeof(*pipelines));
    return device->next.CreateGraphicsPipelines(handle, cache, count, infos, allocator, pipelines);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateRayTracingPipelinesKHR(
    VkDevice handle, VkDeferredOperationKHR operation, VkPipelineCache cache, uint32_t count,
    const VkRayTracingPipelineCreateInfoKHR *infos, const VkAllocationCallbacks *allocator,
    VkPipeline *pipelines)
{
    struct layer_device *device = device_of(handle);

    if (!may_use(device, GOVERNOR_ENGINE_COMPUTE, "ray tracing pipeline"))
        return refuse_all(pipelines, count * sizeof(*pipelines));
    return device->next.CreateRayTracingPipelinesKHR(handle, operation, cache, count, infos,
                                                     allocator, pipelines);
}

VKAPI_ATTR VkResult VKAPI_CALL
layer_CreateRayTracingPipelinesNV(VkDevice handle, VkPipelineCache cache, uint32_t count,
                                  const VkRayTracingPipelineCreateInfoNV *infos,
                                  const VkAllocationCallbacks *allocator, VkPipeline *pipelines)
{
    struct layer_device *device = device_of(handle);

    if (!may_use(device, GOVERNOR_ENGINE_COMPUTE, "ray tracing pipeline"))
        return refuse_all(pipelines, count * sizeof(*pipelines));
    return device->next.CreateRayTracingPipelinesNV(handle, cache, count, infos, allocator,
                                                    pipelines);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateCuFunctionNVX(VkDevice handle,
                                                         const VkCuFunctionCreateInfoNVX *info,
                                                         const VkAllocationCallbacks *allocator,
                                                         VkCuFunctionNVX *function)
{
    struct layer_device *device = device_of(handle);

    if (!may_use(device, GOVERNOR_ENGINE_COMPUTE, "kernel"))
        return refuse_all(function, sizeof(*function));
    return device->next.CreateCuFunctionNVX(handle, info, allocator, function);
}

/* It has no name of its own. */
VKAPI_ATTR VkResult VKAPI_CALL layer_CreateOpticalFlowSessionNV(
    VkDevice handle, const VkOpticalFlowSessionCreateInfoNV *info,
    const VkAllocationCallbacks *allocator, VkOpticalFlowSessionNV *session)
{
    struct layer_device *device = device_of(handle);

    if (!may_use(device, GOVERNOR_ENGINES_ALL, "optical flow for a slice without all engines"))
        return refuse_all(session, sizeof(*session));
    return device->next.CreateOpticalFlowSessionNV(handle, info, allocator, session);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateShadersEXT(VkDevice handle, uint32_t count,
                                                      const VkShaderCreateInfoEXT *infos,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkShaderEXT *shaders)
{
    struct layer_device *device = device_of(handle);

    for (uint32_t i = 0; i < count; i++) {
        bool computes = infos[i].stage == VK_SHADER_STAGE_COMPUTE_BIT;

        if (!may_use(device, computes ? GOVERNOR_ENGINE_COMPUTE : GOVERNOR_ENGINE_GRAPHICS,
                     computes ? "compute shader" : "graphics shader"))
            return refuse_all(shaders, count * sizeof(*shaders));
    }
    return device->next.CreateShadersEXT(handle, count, infos, allocator, shaders);
}

static bool is_decoder(const VkVideoSessionCreateInfoKHR *info)
{
    return !(info->pVideoProfile->videoCodecOperation & ENGINES_ENCODERS);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateVideoSessionKHR(VkDevice handle,
                                                           const VkVideoSessionCreateInfoKHR *info,
                                                           const VkAllocationCallbacks *allocator,
                                                           VkVideoSessionKHR *session)
{
    struct layer_device *device = device_of(handle);

    if (!may_use(device, is_decoder(info) ? GOVERNOR_ENGINE_DECODE : GOVERNOR_ENGINE_ENCODE,
                 is_decoder(info) ? "video decoder" : "video encoder"))
        return refuse_all(session, sizeof(*session));
    return device->next.CreateVideoSessionKHR(handle, info, allocator, session);
}
