// SPDX-License-Identifier: MIT
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "driver_memory.h"
#include "engines.h"
#include "memory.h"
#include "meter.h"
#include "physical.h"
#include "semaphore.h"
#include "swapchain.h"

/* Families can have more than this; the host's clock times the queues of the rest. */
#define MOST_FAMILIES 32

/* The loader's structure of @function in the chain, which each layer is expected to change. */
static VkLayerDeviceCreateInfo *find_loader_info(const VkDeviceCreateInfo *info,
                                                 VkLayerFunction function)
{
    for (const VkBaseInStructure *in = info->pNext; in; in = in->pNext) {
        VkLayerDeviceCreateInfo *found = (VkLayerDeviceCreateInfo *)in;

        if (in->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO && found->function == function)
            return found;
    }
    return NULL;
}

static void get_queue(struct layer_device *device, const VkDeviceQueueCreateInfo *info,
                      uint32_t index, VkQueue *queue)
{
    VkDeviceQueueInfo2 which = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_INFO_2,
        .flags = info->flags,
        .queueFamilyIndex = info->queueFamilyIndex,
        .queueIndex = index,
    };

    if (info->flags)
        device->next.GetDeviceQueue2(device->handle, &which, queue);
    else
        device->next.GetDeviceQueue(device->handle, info->queueFamilyIndex, index, queue);
    /* As the loader does if the application asks for it; layers below find the device by this. */
    device->set_loader_data(device->handle, *queue);
}

/* Transfer-only queues cannot reset queries. */
static uint32_t timestamp_bits(const VkQueueFamilyProperties *family)
{
    if (!(family->queueFlags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT)))
        return 0;
    return family->timestampValidBits;
}

/* What has its own engines on a GPU, as far as families tell. */
static enum governor_class class_of(VkQueueFlags flags)
{
    if (flags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT))
        return GOVERNOR_CLASS_COMPUTE;
    if (flags & (VK_QUEUE_VIDEO_DECODE_BIT_KHR | VK_QUEUE_VIDEO_ENCODE_BIT_KHR))
        return GOVERNOR_CLASS_VIDEO;
    return flags & VK_QUEUE_TRANSFER_BIT ? GOVERNOR_CLASS_COPY : GOVERNOR_CLASS_COMPUTE;
}

static void set_class(struct layer_queue *queue, VkQueueFlags flags)
{
    static _Atomic uint32_t numbers;
    struct layer_device *device = queue->device;

    queue->number = atomic_fetch_add(&numbers, 1);
    queue->class = class_of(flags);
    if (queue == device->queues)
        device->class = queue->class;
    device->has_classes |= queue->class != device->class;
}

static double timestamp_period(const struct layer_instance *instance, VkPhysicalDevice physical)
{
    VkPhysicalDeviceProperties properties;

    instance->next.GetPhysicalDeviceProperties(physical, &properties);
    return (double)properties.limits.timestampPeriod;
}

static bool add_queues(struct layer_device *device, VkPhysicalDevice physical,
                       const VkDeviceCreateInfo *info)
{
    double period = timestamp_period(device->instance, physical);
    VkQueueFamilyProperties families[MOST_FAMILIES] = {0};
    uint32_t family_count = MOST_FAMILIES;
    uint32_t total = 0;

    device->instance->next.GetPhysicalDeviceQueueFamilyProperties(physical, &family_count,
                                                                  families);
    for (uint32_t i = 0; i < info->queueCreateInfoCount; i++)
        total += info->pQueueCreateInfos[i].queueCount;
    device->queues = calloc(total ? total : 1, sizeof(*device->queues));
    if (!device->queues)
        return false;
    for (uint32_t i = 0; i < info->queueCreateInfoCount; i++) {
        const VkDeviceQueueCreateInfo *asked = &info->pQueueCreateInfos[i];

        for (uint32_t j = 0; j < asked->queueCount; j++) {
            struct layer_queue *queue = &device->queues[device->queue_count++];

            queue->device = device;
            queue->family = asked->queueFamilyIndex;
            queue->ticks.period = period;
            if (queue->family < family_count)
                queue->ticks.bits = timestamp_bits(&families[queue->family]);
            set_class(queue, queue->family < family_count ? families[queue->family].queueFlags : 0);
            get_queue(device, asked, j, &queue->handle);
            meter_queue_init(queue);
        }
    }
    return true;
}

/* True if the GPU is a processor. VGPU_GOVERNOR_CLOCK=device: as on any other GPU. */
static bool is_timed_by_host(const struct layer_instance *instance, VkPhysicalDevice physical)
{
    const char *clock = getenv("VGPU_GOVERNOR_CLOCK");
    VkPhysicalDeviceProperties properties;

    if (clock && !strcmp(clock, "device"))
        return false;
    instance->next.GetPhysicalDeviceProperties(physical, &properties);
    return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

static void learn_device(struct layer_device *device, VkPhysicalDevice physical,
                         const VkDeviceCreateInfo *info)
{
    const VkDeviceGroupDeviceCreateInfo *group =
        chain_find(info->pNext, VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO);

    device->instance->next.GetPhysicalDeviceMemoryProperties(physical, &device->memory);
    device->pages = instance_has_extension(device->instance, physical,
                                           VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME);
    if (device->pages)
        governor_member_pages(device->member);
    device->shares_fences = device_enables(info, VK_KHR_EXTERNAL_FENCE_FD_EXTENSION_NAME);
    device->timed_by_host = is_timed_by_host(device->instance, physical);
    device->physical = physical;
    device->driver_tells = driver_memory_is_told(device->instance, physical);
    device->physical_devices = group && group->physicalDeviceCount ? group->physicalDeviceCount : 1;
    handle_map_init(&device->allocations);
    handle_map_init(&device->semaphores);
    handle_map_init(&device->swapchains);
}

/* Releases what the application has left, and all of ours except the device itself. */
static void forget_device(struct layer_device *device)
{
    for (uint32_t i = 0; i < device->queue_count; i++)
        meter_queue_destroy(&device->queues[i]);
    free(device->queues);
    handle_map_destroy(&device->allocations, memory_forget, NULL);
    handle_map_destroy(&device->semaphores, semaphore_forget, NULL);
    handle_map_destroy(&device->swapchains, swapchain_forget, NULL);
}

/* With our extension beside the application's. Fails if there is none to add, too. */
static VkResult create_calibrated(struct layer_device *device, PFN_vkCreateDevice create,
                                  VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                  const VkAllocationCallbacks *allocator, VkDevice *handle)
{
    const char *extension = calibrate_extension(device->instance, physical, info);
    VkDeviceCreateInfo extended = *info;
    VkResult result = VK_ERROR_EXTENSION_NOT_PRESENT;
    const char **names;

    if (!extension || is_timed_by_host(device->instance, physical))
        return result;
    names = calloc(info->enabledExtensionCount + 1, sizeof(*names));
    if (!names)
        return result;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        names[i] = info->ppEnabledExtensionNames[i];
    names[extended.enabledExtensionCount++] = extension;
    extended.ppEnabledExtensionNames = names;
    result = create(physical, &extended, allocator, handle);
    device->calibrated = result == VK_SUCCESS;
    free(names);
    return result;
}

static VkResult create_below(struct layer_device *device, VkPhysicalDevice physical,
                             const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator,
                             VkDevice *handle)
{
    VkLayerDeviceCreateInfo *link = find_loader_info(info, VK_LAYER_LINK_INFO);
    VkLayerDeviceCreateInfo *loader = find_loader_info(info, VK_LOADER_DATA_CALLBACK);
    PFN_vkGetInstanceProcAddr get_instance;
    PFN_vkGetDeviceProcAddr get;
    PFN_vkCreateDevice create;
    VkLayerDeviceLink *below;
    VkResult result;

    if (!link || !loader)
        return VK_ERROR_INITIALIZATION_FAILED;
    get_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    create = (PFN_vkCreateDevice)get_instance(device->instance->handle, "vkCreateDevice");
    if (!create)
        return VK_ERROR_INITIALIZATION_FAILED;
    device->set_loader_data = loader->u.pfnSetDeviceLoaderData;
    below = link->u.pLayerInfo->pNext;
    link->u.pLayerInfo = below;
    /* With the caller's own pointer: the loader passes its object through it. */
    result = create_calibrated(device, create, physical, info, allocator, handle);
    if (result != VK_SUCCESS) {
        /* The layer below has taken its own link off the chain. */
        link->u.pLayerInfo = below;
        result = create(physical, info, allocator, handle);
    }
    if (result != VK_SUCCESS)
        return result;
    device->handle = *handle;
    dispatch_load_device(&device->next, device->handle, get);
    device->calibrated |= calibrate_is_enabled(info);
    device->calibrated &= device->next.GetCalibratedTimestampsKHR != NULL;
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateDevice(VkPhysicalDevice physical,
                                                  const VkDeviceCreateInfo *info,
                                                  const VkAllocationCallbacks *allocator,
                                                  VkDevice *handle)
{
    struct layer_device *device = calloc(1, sizeof(*device));
    VkResult result;

    if (!device)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    device->instance = instance_of(physical);
    device->slice = physical_slice_of_device(device->instance, physical, info);
    result = VK_ERROR_INITIALIZATION_FAILED;
    if (device->slice) {
        device->member = device->slice->member;
        if (engines_allow_queues(device, physical, info))
            result = create_below(device, physical, info, allocator, handle);
    }
    if (result != VK_SUCCESS) {
        free(device);
        return result;
    }
    device->key = dispatch_key(device->handle);
    learn_device(device, physical, info);
    if (!add_queues(device, physical, info) ||
        !dispatch_map_add(&dispatch_devices, device->key, device)) {
        forget_device(device);
        device->next.DestroyDevice(device->handle, allocator);
        free(device);
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    driver_memory_look_now(device);
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL layer_DestroyDevice(VkDevice handle,
                                               const VkAllocationCallbacks *allocator)
{
    struct layer_device *device;

    if (!handle)
        return;
    device = device_of(handle);
    dispatch_map_remove(&dispatch_devices, device->key);
    /*
     * The application's work has ended, but a fence of ours that was sent after it may not have
     * been signalled.
     */
    device->next.DeviceWaitIdle(handle);
    forget_device(device);
    device->next.DestroyDevice(handle, allocator);
    driver_memory_look_now(device);
    free(device);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_DeviceWaitIdle(VkDevice handle)
{
    struct layer_device *device = device_of(handle);
    VkResult result = device->next.DeviceWaitIdle(handle);

    if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST)
        return result;
    for (uint32_t i = 0; i < device->queue_count; i++)
        meter_drain(&device->queues[i]);
    return result;
}
