// SPDX-License-Identifier: MIT
/* What is asked of chains and of lists of extensions. */
#include "layer_state.h"

#include <stdlib.h>
#include <string.h>

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

bool device_enables(const VkDeviceCreateInfo *info, const char *extension)
{
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        if (!strcmp(info->ppEnabledExtensionNames[i], extension))
            return true;
    }
    return false;
}
