/* SPDX-License-Identifier: MIT */
/* What the Vulkan loader and its layers agree on. */
#ifndef GOVERNOR_VULKAN_LOADER_H
#define GOVERNOR_VULKAN_LOADER_H

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

/* From this version on the loader gets the layer's function pointers; older ones have none. */
#define INTERFACE_VERSION 2

VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface);

/* The loader's entry in the chain that names the next layer. NULL: there is none. */
static inline VkLayerInstanceCreateInfo *loader_link(const VkInstanceCreateInfo *info)
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

#endif /* GOVERNOR_VULKAN_LOADER_H */
