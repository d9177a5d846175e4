/* SPDX-License-Identifier: MIT */
#include "vulkan.h"

#include <gio/gio.h>
#include <string.h>

/* Of the device, if it has them: for the tries. */
static const char *const wanted_extensions[] = {
    VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,    VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME,
    VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME, VK_KHR_EXTERNAL_FENCE_FD_EXTENSION_NAME,
    VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME,
};

static gboolean fail_with(GError **error, const char *what, VkResult result)
{
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: VkResult %d", what, result);
    return FALSE;
}

static gboolean create_instance(Gpu *gpu, GError **error)
{
    VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                             .pApplicationName = "vgpu-card",
                             .apiVersion = VK_API_VERSION_1_2};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &app};
    VkResult result = vkCreateInstance(&info, NULL, &gpu->instance);

    return result == VK_SUCCESS || fail_with(error, "vkCreateInstance", result);
}

static gboolean choose_gpu(Gpu *gpu, const char *wanted, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    g_autofree VkPhysicalDevice *all = NULL;
    uint32_t count = 0;

    vkEnumeratePhysicalDevices(gpu->instance, &count, NULL);
    all = g_new0(VkPhysicalDevice, count + 1);
    vkEnumeratePhysicalDevices(gpu->instance, &count, all);
    for (uint32_t i = 0; i < count; i++) {
        vkGetPhysicalDeviceProperties(all[i], &gpu->properties);
        gpu->physical = all[i];
        if (!wanted || strstr(gpu->properties.deviceName, wanted))
            return TRUE;
        g_string_append_printf(names, "%s%s", names->len ? ", " : "", gpu->properties.deviceName);
    }
    if (count)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "no GPU has \"%s\" in its name; there are: %s", wanted, names->str);
    else
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "Vulkan shows no GPU; install mesa-vulkan-drivers or the vendor's driver");
    return FALSE;
}

static void list_extensions(Gpu *gpu)
{
    uint32_t count = 0;

    vkEnumerateDeviceExtensionProperties(gpu->physical, NULL, &count, NULL);
    gpu->extensions = g_array_sized_new(FALSE, TRUE, sizeof(VkExtensionProperties), count);
    g_array_set_size(gpu->extensions, count);
    vkEnumerateDeviceExtensionProperties(gpu->physical, NULL, &count,
                                         (VkExtensionProperties *)(void *)gpu->extensions->data);
}

gboolean gpu_has(const Gpu *gpu, const char *extension)
{
    for (guint i = 0; i < gpu->extensions->len; i++) {
        if (g_str_equal(g_array_index(gpu->extensions, VkExtensionProperties, i).extensionName,
                        extension))
            return TRUE;
    }
    return FALSE;
}

static gboolean find_family(Gpu *gpu, GError **error)
{
    g_autofree VkQueueFamilyProperties *families = NULL;
    uint32_t count = 0;

    vkGetPhysicalDeviceQueueFamilyProperties(gpu->physical, &count, NULL);
    families = g_new0(VkQueueFamilyProperties, count + 1);
    vkGetPhysicalDeviceQueueFamilyProperties(gpu->physical, &count, families);
    for (gpu->family = 0; gpu->family < count; gpu->family++) {
        if (families[gpu->family].queueFlags & VK_QUEUE_COMPUTE_BIT)
            return TRUE;
    }
    return fail_with(error, "no queue that computes", VK_SUCCESS);
}

static gboolean create_device(Gpu *gpu, GError **error)
{
    const char *names[G_N_ELEMENTS(wanted_extensions)];
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = gpu->family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .ppEnabledExtensionNames = names};
    VkResult result;

    for (guint i = 0; i < G_N_ELEMENTS(wanted_extensions); i++) {
        if (gpu_has(gpu, wanted_extensions[i]))
            names[info.enabledExtensionCount++] = wanted_extensions[i];
    }
    result = vkCreateDevice(gpu->physical, &info, NULL, &gpu->device);
    return result == VK_SUCCESS || fail_with(error, "vkCreateDevice", result);
}

gboolean gpu_open(Gpu *gpu, const char *wanted, GError **error)
{
    *gpu = (Gpu){0};
    if (!create_instance(gpu, error))
        return FALSE;
    if (!choose_gpu(gpu, wanted, error)) {
        gpu_close(gpu);
        return FALSE;
    }
    list_extensions(gpu);
    vkGetPhysicalDeviceMemoryProperties(gpu->physical, &gpu->memory);
    if (find_family(gpu, error) && create_device(gpu, error))
        return TRUE;
    gpu_close(gpu);
    return FALSE;
}

void gpu_close(Gpu *gpu)
{
    if (gpu->device)
        vkDestroyDevice(gpu->device, NULL);
    if (gpu->instance)
        vkDestroyInstance(gpu->instance, NULL);
    g_clear_pointer(&gpu->extensions, g_array_unref);
    *gpu = (Gpu){0};
}

void ability_add(JsonArray *list, const char *name, gboolean has, const char *text, const char *use)
{
    JsonObject *ability = json_object_new();

    json_object_set_string_member(ability, "name", name);
    json_object_set_boolean_member(ability, "has", has);
    if (text)
        json_object_set_string_member(ability, "text", text);
    json_object_set_string_member(ability, "for", use);
    json_array_add_object_element(list, ability);
}
