// SPDX-License-Identifier: MIT
#include "calibrate.h"

#include "clock.h"

/* Clocks drift by some parts in a million. */
#define AGAIN_NS     1000000000u
#define MOST_DOMAINS 16

static const char *const extensions[] = {VK_KHR_CALIBRATED_TIMESTAMPS_EXTENSION_NAME,
                                         VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME};

bool calibrate_is_enabled(const VkDeviceCreateInfo *info)
{
    return device_enables(info, extensions[0]) || device_enables(info, extensions[1]);
}

static PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR
find_domains(const struct layer_instance *instance, bool khr)
{
    return (PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR)instance->next.GetInstanceProcAddr(
        instance->handle, khr ? "vkGetPhysicalDeviceCalibrateableTimeDomainsKHR"
                              : "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT");
}

/* The GPU's and the host's clock. */
static bool has_domains(const struct layer_instance *instance, VkPhysicalDevice physical, bool khr)
{
    PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR get = find_domains(instance, khr);
    VkTimeDomainKHR domains[MOST_DOMAINS];
    uint32_t count = MOST_DOMAINS;
    bool device = false, host = false;

    if (!get || get(physical, &count, domains) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        device |= domains[i] == VK_TIME_DOMAIN_DEVICE_KHR;
        host |= domains[i] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_KHR;
    }
    return device && host;
}

const char *calibrate_extension(const struct layer_instance *instance, VkPhysicalDevice physical,
                                const VkDeviceCreateInfo *info)
{
    if (calibrate_is_enabled(info))
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        if (instance_has_extension(instance, physical, extensions[i]) &&
            has_domains(instance, physical, i == 0))
            return extensions[i];
    }
    return NULL;
}

static bool read_clocks(struct layer_queue *queue, uint64_t now)
{
    const VkCalibratedTimestampInfoKHR infos[] = {
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_KHR,
         .timeDomain = VK_TIME_DOMAIN_DEVICE_KHR},
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_KHR,
         .timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_KHR},
    };
    struct layer_device *device = queue->device;
    uint64_t times[2], width;

    if (device->next.GetCalibratedTimestampsKHR(device->handle, 2, infos, times, &width) !=
        VK_SUCCESS)
        return false;
    queue->clock = (struct queue_clock){.tick = times[0], .host_ns = times[1], .read_at = now};
    return true;
}

bool calibrate_time(struct layer_queue *queue, uint64_t tick, uint64_t *at_ns)
{
    uint64_t now = clock_now();

    if (!queue->device->calibrated)
        return false;
    if ((!queue->clock.read_at || now > queue->clock.read_at + AGAIN_NS) &&
        !read_clocks(queue, now))
        return false;
    *at_ns = queue->clock.host_ns + (uint64_t)ticks_between(&queue->ticks, queue->clock.tick, tick);
    return true;
}
