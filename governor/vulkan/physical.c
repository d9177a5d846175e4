// SPDX-License-Identifier: MIT
#include "physical.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

#define SOFT "soft:"

/* A physical device that was looked at. */
struct physical {
    struct physical *next;
    VkPhysicalDevice handle;
    struct layer_slice *slice;
};

static struct layer_slice *find_called(struct layer_slice *slices, const char *gpu)
{
    while (slices && strcmp(slices->gpu, gpu) != 0)
        slices = slices->next;
    return slices;
}

static struct layer_slice *soft_one(struct layer_slice *slices)
{
    while (slices && strncmp(slices->gpu, SOFT, strlen(SOFT)) != 0)
        slices = slices->next;
    return slices;
}

/* The slice with a PCI address, if there is exactly one. */
static struct layer_slice *only_hard_one(struct layer_slice *slices)
{
    struct layer_slice *found = NULL;

    for (; slices; slices = slices->next) {
        if (!*slices->gpu || strncmp(slices->gpu, SOFT, strlen(SOFT)) == 0)
            continue;
        if (found)
            return NULL;
        found = slices;
    }
    return found;
}

struct layer_slice *physical_choose(struct layer_slice *slices, const struct physical_place *place)
{
    struct layer_slice *soft;

    if (!slices->gpu)
        return slices;
    if (place->is_socket)
        return find_called(slices, "");
    if (*place->address)
        return find_called(slices, place->address);
    if (!place->is_cpu)
        return only_hard_one(slices);
    soft = soft_one(slices);
    return soft ? soft : find_called(slices, "");
}

/* Chains the structures that the driver knows; the rest stays unchanged. */
static void ask_driver(const struct layer_instance *instance, VkPhysicalDevice physical,
                       VkPhysicalDevicePCIBusInfoPropertiesEXT *pci,
                       VkPhysicalDeviceDrmPropertiesEXT *drm,
                       VkPhysicalDeviceDriverProperties *driver)
{
    VkPhysicalDeviceProperties2 properties = {.sType =
                                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    const struct {
        const char *extension;
        void *structure;
    } parts[] = {
        {VK_EXT_PCI_BUS_INFO_EXTENSION_NAME, pci},
        {VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME, drm},
        {VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME, driver},
    };
    VkBaseOutStructure *last = (VkBaseOutStructure *)&properties;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!instance_has_extension(instance, physical, parts[i].extension))
            continue;
        last->pNext = parts[i].structure;
        last = last->pNext;
    }
    instance->next.GetPhysicalDeviceProperties2(physical, &properties);
}

static struct physical_place place_of(const struct layer_instance *instance,
                                      VkPhysicalDevice physical)
{
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT,
        .pciDomain = UINT32_MAX};
    VkPhysicalDeviceDrmPropertiesEXT drm = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT, .hasRender = VK_TRUE};
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    struct physical_place place = {0};
    VkPhysicalDeviceProperties properties;

    instance->next.GetPhysicalDeviceProperties(physical, &properties);
    place.is_cpu = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    /* Missing for an instance of Vulkan 1.0 if no driver has the extension. */
    if (instance->next.GetPhysicalDeviceProperties2)
        ask_driver(instance, physical, &pci, &drm, &driver);
    place.is_socket =
        driver.driverID == VK_DRIVER_ID_MESA_VENUS && !drm.hasRender && !drm.hasPrimary;
    if (pci.pciDomain != UINT32_MAX)
        snprintf(place.address, sizeof(place.address), "%04x:%02x:%02x.%x", pci.pciDomain,
                 pci.pciBus & 0xff, pci.pciDevice & 0xff, pci.pciFunction & 0xf);
    return place;
}

static struct physical *look_up_place(struct layer_instance *instance, VkPhysicalDevice handle)
{
    struct physical_place place = place_of(instance, handle);
    struct physical *physical = calloc(1, sizeof(*physical));

    if (!physical)
        return NULL;
    physical->handle = handle;
    physical->slice = physical_choose(instance->slices, &place);
    if (!physical->slice && !process_slices_are_required())
        physical->slice = find_called(instance->slices, "");
    physical->next = instance->physicals;
    instance->physicals = physical;
    return physical;
}

struct layer_slice *physical_slice(struct layer_instance *instance, VkPhysicalDevice handle)
{
    struct physical *physical;

    if (!instance->slices->gpu)
        return instance->slices;
    pthread_mutex_lock(&instance->lock);
    physical = instance->physicals;
    while (physical && physical->handle != handle)
        physical = physical->next;
    if (!physical)
        physical = look_up_place(instance, handle);
    pthread_mutex_unlock(&instance->lock);
    return physical ? physical->slice : NULL;
}

void physical_forget(struct layer_instance *instance)
{
    while (instance->physicals) {
        struct physical *next = instance->physicals->next;

        free(instance->physicals);
        instance->physicals = next;
    }
}

static void say_refused(const struct layer_instance *instance, VkPhysicalDevice physical,
                        const char *why)
{
    VkPhysicalDeviceProperties properties;

    instance->next.GetPhysicalDeviceProperties(physical, &properties);
    fprintf(stderr, "vgpu-governor: cannot create a device of \"%s\": %s\n", properties.deviceName,
            why);
}

struct layer_slice *physical_slice_of_device(struct layer_instance *instance,
                                             VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo *info)
{
    const VkDeviceGroupDeviceCreateInfo *group =
        chain_find(info->pNext, VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO);
    struct layer_slice *slice = physical_slice(instance, physical);

    if (!slice) {
        say_refused(
            instance, physical,
            "this program has slices of other GPUs, but none of this GPU; a slice of it must be "
            "given to the container, too");
        return NULL;
    }
    for (uint32_t i = 0; group && i < group->physicalDeviceCount; i++) {
        if (physical_slice(instance, group->pPhysicalDevices[i]) == slice)
            continue;
        say_refused(instance, physical, "its group has GPUs of another slice");
        return NULL;
    }
    return slice;
}
