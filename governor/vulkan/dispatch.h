/* SPDX-License-Identifier: MIT */
/*
 * The commands of the next layer or driver that this layer calls, and the map from handles to
 * objects of ours. Dispatchable handles begin with a pointer that the loader gives to one instance
 * or one device.
 */
#ifndef GOVERNOR_VULKAN_DISPATCH_H
#define GOVERNOR_VULKAN_DISPATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#define INSTANCE_COMMANDS(X)                                                                       \
    X(DestroyInstance)                                                                             \
    X(GetPhysicalDeviceProperties)                                                                 \
    X(GetPhysicalDeviceQueueFamilyProperties)                                                      \
    X(GetPhysicalDeviceMemoryProperties)                                                           \
    X(EnumerateDeviceExtensionProperties)

/* Of Vulkan 1.1 or VK_KHR_get_physical_device_properties2, whose aliases end with KHR. */
#define INSTANCE_COMMANDS_KHR(X)                                                                   \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceQueueFamilyProperties2)                                                     \
    X(GetPhysicalDeviceMemoryProperties2)

#define DEVICE_COMMANDS(X)                                                                         \
    X(GetDeviceProcAddr)                                                                           \
    X(DestroyDevice)                                                                               \
    X(DeviceWaitIdle)                                                                              \
    X(GetDeviceQueue)                                                                              \
    X(GetDeviceQueue2)                                                                             \
    X(QueueSubmit)                                                                                 \
    X(QueueBindSparse)                                                                             \
    X(QueueWaitIdle)                                                                               \
    X(QueuePresentKHR)                                                                             \
    X(AllocateMemory)                                                                              \
    X(FreeMemory)                                                                                  \
    X(GetMemoryFdKHR)                                                                              \
    X(CreateSemaphore)                                                                             \
    X(DestroySemaphore)                                                                            \
    X(ImportSemaphoreFdKHR)                                                                        \
    X(GetSemaphoreFdKHR)                                                                           \
    X(CreateSwapchainKHR)                                                                          \
    X(CreateSharedSwapchainsKHR)                                                                   \
    X(DestroySwapchainKHR)                                                                         \
    X(GetSwapchainImagesKHR)                                                                       \
    X(CreateFence)                                                                                 \
    X(DestroyFence)                                                                                \
    X(ResetFences)                                                                                 \
    X(WaitForFences)                                                                               \
    X(GetFenceStatus)                                                                              \
    X(CreateQueryPool)                                                                             \
    X(DestroyQueryPool)                                                                            \
    X(CreateEvent)                                                                                 \
    X(DestroyEvent)                                                                                \
    X(GetEventStatus)                                                                              \
    X(ResetEvent)                                                                                  \
    X(CreateComputePipelines)                                                                      \
    X(CreateGraphicsPipelines)                                                                     \
    X(CreateRayTracingPipelinesKHR)                                                                \
    X(CreateRayTracingPipelinesNV)                                                                 \
    X(CreateCuFunctionNVX)                                                                         \
    X(CreateOpticalFlowSessionNV)                                                                  \
    X(CreateShadersEXT)                                                                            \
    X(CreateVideoSessionKHR)                                                                       \
    X(CreateBuffer)                                                                                \
    X(DestroyBuffer)                                                                               \
    X(GetBufferMemoryRequirements)                                                                 \
    X(BindBufferMemory)                                                                            \
    X(MapMemory)                                                                                   \
    X(CreateCommandPool)                                                                           \
    X(DestroyCommandPool)                                                                          \
    X(AllocateCommandBuffers)                                                                      \
    X(BeginCommandBuffer)                                                                          \
    X(EndCommandBuffer)                                                                            \
    X(CmdResetQueryPool)                                                                           \
    X(CmdWriteTimestamp)                                                                           \
    X(CmdCopyQueryPoolResults)                                                                     \
    X(CmdPipelineBarrier)                                                                          \
    X(CmdSetEvent)                                                                                 \
    X(GetCalibratedTimestampsKHR)

#define DEVICE_COMMANDS_KHR(X)                                                                     \
    X(QueueSubmit2)                                                                                \
    X(CmdBeginRendering)                                                                           \
    X(GetSemaphoreCounterValue)                                                                    \
    X(WaitSemaphores)                                                                              \
    X(GetBufferMemoryRequirements2)                                                                \
    X(GetImageMemoryRequirements2)

#define DECLARE_COMMAND(name) PFN_vk##name name;

struct instance_dispatch {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
    /*
     * Not part of the API: finds commands for physical devices that the loader does not know. May
     * be NULL.
     */
    PFN_vkGetInstanceProcAddr get_physical_device_proc_addr;
    INSTANCE_COMMANDS(DECLARE_COMMAND)
    INSTANCE_COMMANDS_KHR(DECLARE_COMMAND)
};

struct device_dispatch {
    DEVICE_COMMANDS(DECLARE_COMMAND)
    DEVICE_COMMANDS_KHR(DECLARE_COMMAND)
};

#undef DECLARE_COMMAND

/* Which of these commands an instance may use: a core name in one of Vulkan 1.0 is an error. */
enum properties2 { PROPERTIES2_NONE, PROPERTIES2_EXTENSION, PROPERTIES2_CORE };

void dispatch_load_instance(struct instance_dispatch *next, VkInstance instance,
                            PFN_vkGetInstanceProcAddr get, enum properties2 properties2);
void dispatch_load_device(struct device_dispatch *next, VkDevice device,
                          PFN_vkGetDeviceProcAddr get);

/*
 * From a loader's pointer to an object of ours. A look-up takes no lock and may happen while others
 * add and remove. The application must ensure that nobody uses a handle while it is destroyed.
 */
#define DISPATCH_MAP_SLOTS 256

struct dispatch_map {
    struct {
        _Atomic(void *) key;
        _Atomic(void *) value;
    } slots[DISPATCH_MAP_SLOTS];
};

extern struct dispatch_map dispatch_instances;
extern struct dispatch_map dispatch_devices;

/* False if all slots are taken. */
bool dispatch_map_add(struct dispatch_map *map, void *key, void *value);
void dispatch_map_remove(struct dispatch_map *map, void *key);

static inline void *dispatch_key(const void *handle)
{
    return *(void *const *)handle;
}

static inline uint32_t dispatch_hash(const void *key)
{
    return (uint32_t)(((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 56) % DISPATCH_MAP_SLOTS;
}

/* NULL if there is none. */
static inline void *dispatch_find(struct dispatch_map *map, const void *handle)
{
    void *key = dispatch_key(handle);
    uint32_t start = dispatch_hash(key);

    for (uint32_t i = 0; i < DISPATCH_MAP_SLOTS; i++) {
        uint32_t at = (start + i) % DISPATCH_MAP_SLOTS;
        void *found = atomic_load_explicit(&map->slots[at].key, memory_order_acquire);

        if (found == key)
            return atomic_load_explicit(&map->slots[at].value, memory_order_relaxed);
        if (!found)
            break;
    }
    return NULL;
}

#endif /* GOVERNOR_VULKAN_DISPATCH_H */
