// SPDX-License-Identifier: MIT
/* Queue families, and devices with queues of them. */
#include "engines.h"

#include <stdio.h>
#include <stdlib.h>

#include "governor_protocol.h"
#include "physical.h"

/* Flags of an engine's work; those without an engine here are for slices with all engines. */
static const struct {
    uint32_t engine;
    VkQueueFlags flag;
} kinds[] = {
    {GOVERNOR_ENGINE_GRAPHICS, VK_QUEUE_GRAPHICS_BIT},
    {GOVERNOR_ENGINE_COMPUTE, VK_QUEUE_COMPUTE_BIT},
    {GOVERNOR_ENGINE_TRANSFER, VK_QUEUE_TRANSFER_BIT},
    {GOVERNOR_ENGINE_DECODE, VK_QUEUE_VIDEO_DECODE_BIT_KHR},
    {GOVERNOR_ENGINE_ENCODE, VK_QUEUE_VIDEO_ENCODE_BIT_KHR},
};

VkQueueFlags engines_allow(uint32_t engines, VkQueueFlags flags)
{
    static const VkQueueFlags always =
        VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;
    VkQueueFlags left = 0;

    if (engines == GOVERNOR_ENGINES_ALL)
        return flags;
    /* These can copy, whether they say so or not. */
    if (flags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT))
        flags |= VK_QUEUE_TRANSFER_BIT;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (engines & kinds[i].engine)
            left |= flags & kinds[i].flag;
    }
    return left ? left | (flags & always) : 0;
}

static uint32_t engines_of(VkPhysicalDevice physical)
{
    const struct layer_slice *slice = physical_slice(instance_of(physical), physical);

    return slice ? governor_member_engines(slice->member) : GOVERNOR_ENGINES_ALL;
}

VKAPI_ATTR void VKAPI_CALL layer_GetPhysicalDeviceQueueFamilyProperties(
    VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties *families)
{
    uint32_t engines = engines_of(physical);

    instance_of(physical)->next.GetPhysicalDeviceQueueFamilyProperties(physical, count, families);
    for (uint32_t i = 0; families && i < *count; i++)
        families[i].queueFlags = engines_allow(engines, families[i].queueFlags);
}

static void limit_video(VkQueueFamilyProperties2 *family, VkQueueFlags before)
{
    VkQueueFlags flags = family->queueFamilyProperties.queueFlags;
    VkQueueFamilyVideoPropertiesKHR *video = (VkQueueFamilyVideoPropertiesKHR *)chain_find(
        family->pNext, VK_STRUCTURE_TYPE_QUEUE_FAMILY_VIDEO_PROPERTIES_KHR);

    if (!video || flags == before)
        return;
    if (!(flags & VK_QUEUE_VIDEO_DECODE_BIT_KHR))
        video->videoCodecOperations &= ~ENGINES_DECODERS;
    if (!(flags & VK_QUEUE_VIDEO_ENCODE_BIT_KHR))
        video->videoCodecOperations &= ~ENGINES_ENCODERS;
}

VKAPI_ATTR void VKAPI_CALL layer_GetPhysicalDeviceQueueFamilyProperties2(
    VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties2 *families)
{
    uint32_t engines = engines_of(physical);

    instance_of(physical)->next.GetPhysicalDeviceQueueFamilyProperties2(physical, count, families);
    for (uint32_t i = 0; families && i < *count; i++) {
        VkQueueFlags flags = families[i].queueFamilyProperties.queueFlags;

        families[i].queueFamilyProperties.queueFlags = engines_allow(engines, flags);
        limit_video(&families[i], flags);
    }
}

/* To be freed; NULL: no memory. */
static VkQueueFamilyProperties *families_of(const struct layer_instance *instance,
                                            VkPhysicalDevice physical, uint32_t *count)
{
    VkQueueFamilyProperties *families;

    instance->next.GetPhysicalDeviceQueueFamilyProperties(physical, count, NULL);
    families = calloc(*count ? *count : 1, sizeof(*families));
    if (families)
        instance->next.GetPhysicalDeviceQueueFamilyProperties(physical, count, families);
    return families;
}

bool engines_allow_queues(const struct layer_device *device, VkPhysicalDevice physical,
                          const VkDeviceCreateInfo *info)
{
    uint32_t engines = governor_member_engines(device->member);
    VkQueueFamilyProperties *families;
    uint32_t count = 0;
    bool allowed = true;

    if (engines == GOVERNOR_ENGINES_ALL)
        return true;
    families = families_of(device->instance, physical, &count);
    if (!families)
        return false;
    for (uint32_t i = 0; i < info->queueCreateInfoCount && allowed; i++) {
        uint32_t family = info->pQueueCreateInfos[i].queueFamilyIndex;

        allowed = family < count && engines_allow(engines, families[family].queueFlags);
        if (!allowed)
            fprintf(stderr,
                    "vgpu-governor: cannot create a device with queues of family %u: the slice may "
                    "not use its "
                    "engines (\"vgpuctl slice set\" with --engines changes that)\n",
                    family);
    }
    free(families);
    return allowed;
}
