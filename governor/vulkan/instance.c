// SPDX-License-Identifier: MIT
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "physical.h"

const void *chain_find(const void *chain, VkStructureType type)
{
    for (const VkBaseInStructure *in = chain; in; in = in->pNext) {
        if (in->sType == type)
            return in;
    }
    return NULL;
}

bool instance_has_extension(const struct layer_instance *instance, VkPhysicalDevice physical,
                            const char *name)
{
    PFN_vkEnumerateDeviceExtensionProperties enumerate =
        instance->next.EnumerateDeviceExtensionProperties;
    VkExtensionProperties *extensions;
    uint32_t count = 0;
    bool found = false;

    if (enumerate(physical, NULL, &count, NULL) < 0)
        return false;
    extensions = calloc(count ? count : 1, sizeof(*extensions));
    if (!extensions)
        return false;
    if (enumerate(physical, NULL, &count, extensions) >= 0) {
        for (uint32_t i = 0; i < count && !found; i++)
            found = !strcmp(extensions[i].extensionName, name);
    }
    free(extensions);
    return found;
}

/* The loader's entry in the chain that names the next layer. */
static VkLayerInstanceCreateInfo *find_link(const VkInstanceCreateInfo *info)
{
    for (const VkBaseInStructure *in = info->pNext; in; in = in->pNext) {
        /* The loader's structure, which each layer is expected to change. */
        VkLayerInstanceCreateInfo *found = (VkLayerInstanceCreateInfo *)in;

        if (in->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO &&
            found->function == VK_LAYER_LINK_INFO)
            return found;
    }
    return NULL;
}

static VkResult create_below(VkLayerInstanceCreateInfo *link, const VkInstanceCreateInfo *info,
                             const VkAllocationCallbacks *allocator, VkInstance *instance,
                             struct layer_instance *created)
{
    PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    PFN_GetPhysicalDeviceProcAddr get_physical =
        link->u.pLayerInfo->pfnNextGetPhysicalDeviceProcAddr;
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
    VkResult result;

    if (!create)
        return VK_ERROR_INITIALIZATION_FAILED;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    /* With the caller's own pointer: the loader passes its object through it. */
    result = create(info, allocator, instance);
    if (result != VK_SUCCESS)
        return result;
    created->handle = *instance;
    dispatch_load_instance(&created->next, created->handle, get);
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
    VkLayerInstanceCreateInfo *link = find_link(info);
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
