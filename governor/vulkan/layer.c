// SPDX-License-Identifier: MIT
/* The layer's entry points for the loader, and the list of commands that it intercepts. */
#include <string.h>

#include "device.h"
#include "engines.h"
#include "loader.h"
#include "memory.h"
#include "semaphore.h"
#include "submit.h"
#include "swapchain.h"
#include "wait.h"

enum scope { SCOPE_GLOBAL, SCOPE_INSTANCE, SCOPE_DEVICE };

struct command {
    const char *name;
    enum scope scope;
    PFN_vkVoidFunction function;
};

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetInstanceProcAddr(VkInstance instance,
                                                                          const char *name);
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetDeviceProcAddr(VkDevice device,
                                                                        const char *name);

#define COMMAND(name, scope)       {"vk" #name, scope, (PFN_vkVoidFunction)layer_##name}
#define ALIAS(name, suffix, scope) {"vk" #name #suffix, scope, (PFN_vkVoidFunction)layer_##name}

static const struct command commands[] = {
    COMMAND(GetInstanceProcAddr, SCOPE_GLOBAL),
    COMMAND(CreateInstance, SCOPE_GLOBAL),
    COMMAND(DestroyInstance, SCOPE_INSTANCE),
    COMMAND(CreateDevice, SCOPE_INSTANCE),
    COMMAND(GetPhysicalDeviceQueueFamilyProperties, SCOPE_INSTANCE),
    COMMAND(GetPhysicalDeviceQueueFamilyProperties2, SCOPE_INSTANCE),
    ALIAS(GetPhysicalDeviceQueueFamilyProperties2, KHR, SCOPE_INSTANCE),
    COMMAND(GetPhysicalDeviceMemoryProperties, SCOPE_INSTANCE),
    COMMAND(GetPhysicalDeviceMemoryProperties2, SCOPE_INSTANCE),
    ALIAS(GetPhysicalDeviceMemoryProperties2, KHR, SCOPE_INSTANCE),
    COMMAND(GetDeviceProcAddr, SCOPE_DEVICE),
    COMMAND(DestroyDevice, SCOPE_DEVICE),
    COMMAND(DeviceWaitIdle, SCOPE_DEVICE),
    COMMAND(QueueSubmit, SCOPE_DEVICE),
    COMMAND(QueueSubmit2, SCOPE_DEVICE),
    ALIAS(QueueSubmit2, KHR, SCOPE_DEVICE),
    COMMAND(QueueBindSparse, SCOPE_DEVICE),
    COMMAND(QueuePresentKHR, SCOPE_DEVICE),
    COMMAND(QueueWaitIdle, SCOPE_DEVICE),
    COMMAND(WaitForFences, SCOPE_DEVICE),
    COMMAND(GetFenceStatus, SCOPE_DEVICE),
    COMMAND(ResetFences, SCOPE_DEVICE),
    COMMAND(DestroyFence, SCOPE_DEVICE),
    COMMAND(WaitSemaphores, SCOPE_DEVICE),
    ALIAS(WaitSemaphores, KHR, SCOPE_DEVICE),
    COMMAND(CmdBeginRendering, SCOPE_DEVICE),
    ALIAS(CmdBeginRendering, KHR, SCOPE_DEVICE),
    COMMAND(AllocateMemory, SCOPE_DEVICE),
    COMMAND(FreeMemory, SCOPE_DEVICE),
    COMMAND(GetMemoryFdKHR, SCOPE_DEVICE),
    COMMAND(CreateSemaphore, SCOPE_DEVICE),
    COMMAND(DestroySemaphore, SCOPE_DEVICE),
    COMMAND(ImportSemaphoreFdKHR, SCOPE_DEVICE),
    COMMAND(GetSemaphoreFdKHR, SCOPE_DEVICE),
    COMMAND(CreateComputePipelines, SCOPE_DEVICE),
    COMMAND(CreateGraphicsPipelines, SCOPE_DEVICE),
    COMMAND(CreateRayTracingPipelinesKHR, SCOPE_DEVICE),
    COMMAND(CreateRayTracingPipelinesNV, SCOPE_DEVICE),
    COMMAND(CreateCuFunctionNVX, SCOPE_DEVICE),
    COMMAND(CreateOpticalFlowSessionNV, SCOPE_DEVICE),
    COMMAND(CreateShadersEXT, SCOPE_DEVICE),
    COMMAND(CreateVideoSessionKHR, SCOPE_DEVICE),
    COMMAND(CreateSwapchainKHR, SCOPE_DEVICE),
    COMMAND(CreateSharedSwapchainsKHR, SCOPE_DEVICE),
    COMMAND(DestroySwapchainKHR, SCOPE_DEVICE),
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    }
    return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetInstanceProcAddr(VkInstance handle,
                                                                          const char *name)
{
    const struct command *command = find_command(name);
    struct layer_instance *instance;
    PFN_vkVoidFunction below;

    if (command && command->scope == SCOPE_GLOBAL)
        return command->function;
    if (!handle)
        return NULL;
    instance = instance_of(handle);
    if (!instance)
        return NULL;
    below = instance->next.GetInstanceProcAddr(handle, name);
    /*
     * A command that is missing below is missing here, too: for example one of an extension that is
     * not enabled.
     */
    return command && below ? command->function : below;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetDeviceProcAddr(VkDevice handle,
                                                                        const char *name)
{
    const struct command *command = find_command(name);
    struct layer_device *device = device_of(handle);
    PFN_vkVoidFunction below;

    if (!device)
        return NULL;
    below = device->next.GetDeviceProcAddr(handle, name);
    return command && command->scope == SCOPE_DEVICE && below ? command->function : below;
}

/* The layer intercepts no commands of physical devices that the loader does not know. */
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_physical_device_proc_addr(VkInstance handle,
                                                                              const char *name)
{
    struct layer_instance *instance = instance_of(handle);
    const struct command *command = find_command(name);

    if (command && command->scope == SCOPE_INSTANCE)
        return command->function;
    if (!instance || !instance->next.get_physical_device_proc_addr)
        return NULL;
    return instance->next.get_physical_device_proc_addr(handle, name);
}

__attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface)
{
    if (interface->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
        interface->loaderLayerInterfaceVersion < INTERFACE_VERSION)
        return VK_ERROR_INITIALIZATION_FAILED;
    interface->loaderLayerInterfaceVersion = INTERFACE_VERSION;
    interface->pfnGetInstanceProcAddr = layer_GetInstanceProcAddr;
    interface->pfnGetDeviceProcAddr = layer_GetDeviceProcAddr;
    interface->pfnGetPhysicalDeviceProcAddr = get_physical_device_proc_addr;
    return VK_SUCCESS;
}
