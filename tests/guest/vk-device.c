/* SPDX-License-Identifier: MIT */
#include "vk-device.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEVICES    16
#define MAX_FAMILIES   16
#define MAX_EXTENSIONS 512

static const char *result_name(VkResult result)
{
    switch (result) {
    case VK_NOT_READY:
        return "VK_NOT_READY";
    case VK_TIMEOUT:
        return "VK_TIMEOUT";
    case VK_INCOMPLETE:
        return "VK_INCOMPLETE";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
        return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
        return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED:
        return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
        return "VK_ERROR_INCOMPATIBLE_DRIVER";
    default:
        return "unexpected";
    }
}

void vk_check(const struct job *job, VkResult result, const char *what)
{
    if (result != VK_SUCCESS)
        job_fail(job, "%s: VkResult %d (%s)", what, result, result_name(result));
}

static void create_instance(struct vk_device *dev)
{
    VkApplicationInfo app = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = dev->job->program,
        .apiVersion = VK_API_VERSION_1_1,
    };
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &app,
    };

    vk_check(dev->job, vkCreateInstance(&info, NULL, &dev->instance), "vkCreateInstance");
}

static void choose_gpu(struct vk_device *dev)
{
    VkPhysicalDevice gpus[MAX_DEVICES];
    uint32_t count = MAX_DEVICES;
    char seen[1024] = "";

    VkResult result = vkEnumeratePhysicalDevices(dev->instance, &count, gpus);
    if (result != VK_INCOMPLETE)
        vk_check(dev->job, result, "vkEnumeratePhysicalDevices");
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceProperties props;

        vkGetPhysicalDeviceProperties(gpus[i], &props);
        if (job_wants_device(dev->job, props.deviceName)) {
            dev->gpu = gpus[i];
            snprintf(dev->name, sizeof(dev->name), "%s", props.deviceName);
            return;
        }
        size_t used = strlen(seen);
        snprintf(seen + used, sizeof(seen) - used, "%s'%s'", used ? ", " : "", props.deviceName);
    }
    job_fail(dev->job, "no Vulkan device has '%s' in its name; there are: %s",
             dev->job->device_name ? dev->job->device_name : "", count ? seen : "none");
}

static void choose_queue_family(struct vk_device *dev)
{
    VkQueueFamilyProperties families[MAX_FAMILIES];
    uint32_t count = MAX_FAMILIES;

    vkGetPhysicalDeviceQueueFamilyProperties(dev->gpu, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            dev->queue_family = i;
            return;
        }
    }
    job_fail(dev->job, "%s has no queue for compute", dev->name);
}

static void create_device(struct vk_device *dev, const char *const *extensions, uint32_t count,
                          const void *features)
{
    float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = dev->queue_family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = features,
        .enabledExtensionCount = count,
        .ppEnabledExtensionNames = extensions,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
    };

    vk_check(dev->job, vkCreateDevice(dev->gpu, &info, NULL, &dev->device), "vkCreateDevice");
    vkGetDeviceQueue(dev->device, dev->queue_family, 0, &dev->queue);
    vkGetPhysicalDeviceMemoryProperties(dev->gpu, &dev->memory);
}

void vk_device_open_with(struct vk_device *dev, const struct job *job,
                         const char *const *extensions, uint32_t count, const void *features)
{
    *dev = (struct vk_device){.job = job};
    create_instance(dev);
    choose_gpu(dev);
    choose_queue_family(dev);
    create_device(dev, extensions, count, features);
}

void vk_device_open(struct vk_device *dev, const struct job *job)
{
    vk_device_open_with(dev, job, NULL, 0, NULL);
}

bool vk_device_offers(const struct job *job, const char *extension)
{
    VkExtensionProperties list[MAX_EXTENSIONS];
    uint32_t count = MAX_EXTENSIONS;
    struct vk_device dev = {.job = job};
    bool found = false;

    create_instance(&dev);
    choose_gpu(&dev);
    vkEnumerateDeviceExtensionProperties(dev.gpu, NULL, &count, list);
    for (uint32_t i = 0; i < count; i++)
        found |= strcmp(list[i].extensionName, extension) == 0;
    vkDestroyInstance(dev.instance, NULL);
    return found;
}

void vk_device_close(struct vk_device *dev)
{
    vkDestroyDevice(dev->device, NULL);
    vkDestroyInstance(dev->instance, NULL);
}

static uint32_t memory_type(const struct vk_device *dev, uint32_t allowed, enum vk_place place)
{
    VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;

    if (place == VK_PLACE_HOST)
        wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (uint32_t i = 0; i < dev->memory.memoryTypeCount; i++) {
        if ((allowed & (1u << i)) && (dev->memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return i;
    }
    job_fail(dev->job, "%s has no memory that is %s", dev->name,
             place == VK_PLACE_HOST ? "host-visible and coherent" : "device-local");
}

void vk_buffer_create(const struct vk_device *dev, VkDeviceSize size, enum vk_place place,
                      struct vk_buffer *buffer)
{
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkMemoryRequirements needs;

    vk_check(dev->job, vkCreateBuffer(dev->device, &info, NULL, &buffer->buffer), "vkCreateBuffer");
    vkGetBufferMemoryRequirements(dev->device, buffer->buffer, &needs);

    VkMemoryAllocateInfo alloc = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = needs.size,
        .memoryTypeIndex = memory_type(dev, needs.memoryTypeBits, place),
    };

    vk_check(dev->job, vkAllocateMemory(dev->device, &alloc, NULL, &buffer->memory),
             "vkAllocateMemory");
    vk_check(dev->job, vkBindBufferMemory(dev->device, buffer->buffer, buffer->memory, 0),
             "vkBindBufferMemory");
    buffer->map = NULL;
    if (place == VK_PLACE_HOST)
        vk_check(dev->job,
                 vkMapMemory(dev->device, buffer->memory, 0, VK_WHOLE_SIZE, 0, &buffer->map),
                 "vkMapMemory");
}

void vk_buffer_destroy(const struct vk_device *dev, struct vk_buffer *buffer)
{
    vkDestroyBuffer(dev->device, buffer->buffer, NULL);
    vkFreeMemory(dev->device, buffer->memory, NULL);
}
