// SPDX-License-Identifier: MIT
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "loader.h"
#include "physical.h"

static enum properties2 properties2_of(const VkInstanceCreateInfo *info)
{
    if (info->pApplicationInfo && info->pApplicationInfo->apiVersion >= VK_API_VERSION_1_1)
        return PROPERTIES2_CORE;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        if (!strcmp(info->ppEnabledExtensionNames[i],
                    VK_KHR_GET_PHYSICAL_DEVICE_PROPERTIES_2_EXTENSION_NAME))
            return PROPERTIES2_EXTENSION;
    return PROPERTIES2_NONE;
}

/*
 * An instance of Vulkan 1.0 gets the extension by which a GPU's PCI address can be asked, unless
 * the loader or all drivers lack it. It adds commands and changes nothing else.
 */
static VkResult create_with_properties2(PFN_vkCreateInstance create,
                                        VkLayerInstanceCreateInfo *link,
                                        const VkInstanceCreateInfo *info,
                                        const VkAllocationCallbacks *allocator,
                                        VkInstance *instance, enum properties2 *properties2)
{
    VkLayerInstanceLink *next = link->u.pLayerInfo;
    VkInstanceCreateInfo more = *info;
    const char **names;
    VkResult result;

    *properties2 = properties2_of(info);
    names = *properties2 ? NULL : calloc(info->enabledExtensionCount + 1, sizeof(*names));
    if (!names)
        return create(info, allocator, instance);
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        names[i] = info->ppEnabledExtensionNames[i];
    names[more.enabledExtensionCount++] = VK_KHR_GET_PHYSICAL_DEVICE_PROPERTIES_2_EXTENSION_NAME;
    more.ppEnabledExtensionNames = names;
    result = create(&more, allocator, instance);
    free(names);
    if (result == VK_SUCCESS)
        *properties2 = PROPERTIES2_EXTENSION;
    if (result != VK_ERROR_EXTENSION_NOT_PRESENT)
        return result;
    /* Each layer below has taken its own link from the list. */
    link->u.pLayerInfo = next;
    return create(info, allocator, instance);
}

static VkResult create_below(VkLayerInstanceCreateInfo *link, const VkInstanceCreateInfo *info,
                             const VkAllocationCallbacks *allocator, VkInstance *instance,
                             struct layer_instance *created)
{
    PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    PFN_GetPhysicalDeviceProcAddr get_physical =
        link->u.pLayerInfo->pfnNextGetPhysicalDeviceProcAddr;
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
    enum properties2 properties2;
    VkResult result;

    if (!create)
        return VK_ERROR_INITIALIZATION_FAILED;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    /* With the caller's own pointer: the loader passes its object through it. */
    result = create_with_properties2(create, link, info, allocator, instance, &properties2);
    if (result != VK_SUCCESS)
        return result;
    created->handle = *instance;
    dispatch_load_instance(&created->next, created->handle, get, properties2);
    created->next.get_physical_device_proc_addr = get_physical;
    if (dispatch_map_add(&dispatch_instances, dispatch_key(created->handle), created))
        return VK_SUCCESS;
    created->next.DestroyInstance(created->handle, allocator);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateInstance(const VkInstanceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkInstance *instance)
{
    VkLayerInstanceCreateInfo *link = loader_link(info);
    struct layer_slice *slices;
    struct layer_instance *created;
    VkResult result;

    if (!link)
        return VK_ERROR_INITIALIZATION_FAILED;
    slices = process_slices_get();
    if (!slices)
        return VK_ERROR_INITIALIZATION_FAILED;
    created = calloc(1, sizeof(*created));
    result = created ? create_below(link, info, allocator, instance, created)
                     : VK_ERROR_OUT_OF_HOST_MEMORY;
    if (result != VK_SUCCESS) {
        free(created);
        process_slices_put();
        return result;
    }
    created->slices = slices;
    pthread_mutex_init(&created->lock, NULL);
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL layer_DestroyInstance(VkInstance handle,
                                                 const VkAllocationCallbacks *allocator)
{
    struct layer_instance *instance;

    if (!handle)
        return;
    instance = instance_of(handle);
    dispatch_map_remove(&dispatch_instances, dispatch_key(handle));
    instance->next.DestroyInstance(handle, allocator);
    physical_forget(instance);
    pthread_mutex_destroy(&instance->lock);
    free(instance);
    process_slices_put();
}
