/* SPDX-License-Identifier: MIT */
#include "vulkan.h"

#include <gio/gio.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024 * 1024)

static const char *type_name(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return "software";
    default:
        return "other";
    }
}

/*
 * Bytes of a heap that the CPU can access, which may be less than all (a BAR of 256 MiB). Only the
 * driver knows, by memory types.
 */
static gboolean host_visible(const Gpu *gpu, guint heap)
{
    for (guint i = 0; i < gpu->memory.memoryTypeCount; i++) {
        if (gpu->memory.memoryTypes[i].heapIndex == heap &&
            gpu->memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
            return TRUE;
    }
    return FALSE;
}

static JsonArray *describe_heaps(const Gpu *gpu)
{
    JsonArray *heaps = json_array_new();

    for (guint i = 0; i < gpu->memory.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &gpu->memory.memoryHeaps[i];
        JsonObject *object = json_object_new();

        json_object_set_int_member(object, "mib", (gint64)(heap->size / MIB));
        json_object_set_boolean_member(object, "device_local",
                                       (heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0);
        json_object_set_boolean_member(object, "host_visible", host_visible(gpu, i));
        json_array_add_object_element(heaps, object);
    }
    return heaps;
}

static JsonArray *describe_queues(const Gpu *gpu)
{
    g_autofree VkQueueFamilyProperties *families = NULL;
    JsonArray *queues = json_array_new();
    uint32_t count = 0;

    vkGetPhysicalDeviceQueueFamilyProperties(gpu->physical, &count, NULL);
    families = g_new0(VkQueueFamilyProperties, count + 1);
    vkGetPhysicalDeviceQueueFamilyProperties(gpu->physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        VkQueueFlags flags = families[i].queueFlags;
        g_autofree char *does =
            g_strdup_printf("%s%s%s", flags & VK_QUEUE_GRAPHICS_BIT ? "graphics " : "",
                            flags & VK_QUEUE_COMPUTE_BIT ? "compute " : "",
                            flags & VK_QUEUE_TRANSFER_BIT ? "transfer" : "");
        JsonObject *object = json_object_new();

        json_object_set_int_member(object, "queues", families[i].queueCount);
        json_object_set_string_member(object, "does", g_strchomp(does));
        json_object_set_int_member(object, "timestamp_bits", families[i].timestampValidBits);
        json_array_add_object_element(queues, object);
    }
    return queues;
}

static void describe_driver(const Gpu *gpu, JsonObject *object)
{
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 props = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                         .pNext = &driver};
    uint32_t version = gpu->properties.apiVersion;
    g_autofree char *api =
        g_strdup_printf("%u.%u.%u", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                        VK_API_VERSION_PATCH(version));

    if (version >= VK_API_VERSION_1_2 || gpu_has(gpu, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME))
        vkGetPhysicalDeviceProperties2(gpu->physical, &props);
    json_object_set_string_member(object, "driver", driver.driverName);
    json_object_set_string_member(object, "driver_info", driver.driverInfo);
    json_object_set_string_member(object, "api", api);
}

/* The kernel's driver of a PCI device; "" if there is none. */
static char *kernel_driver(const char *address)
{
    g_autofree char *path = g_strdup_printf("/sys/bus/pci/devices/%s/driver", address);
    g_autofree char *target = g_file_read_link(path, NULL);

    return target ? g_path_get_basename(target) : g_strdup("");
}

static void set_address(JsonObject *object, const char *address)
{
    g_autofree char *driver = kernel_driver(address);

    json_object_set_string_member(object, "address", address);
    json_object_set_string_member(object, "kernel_driver", driver);
}

/*
 * The PCI device of a render node, or the one below it: virtio-gpu's node is on a virtio device.
 * NULL: none. To be freed.
 */
static char *address_of_node(gint64 major, gint64 minor)
{
    g_autofree char *link = g_strdup_printf(
        "/sys/dev/char/%" G_GINT64_FORMAT ":%" G_GINT64_FORMAT "/device", major, minor);
    char path[PATH_MAX];

    if (!realpath(link, path))
        return NULL;
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        unsigned domain, bus, device, function;
        int used = 0;

        if (sscanf(slash + 1, "%x:%x:%x.%x%n", &domain, &bus, &device, &function, &used) == 4 &&
            !slash[1 + used])
            return g_strdup(slash + 1);
        *slash = '\0';
    }
    return NULL;
}

static void describe_place(const Gpu *gpu, JsonObject *object)
{
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
    VkPhysicalDeviceDrmPropertiesEXT drm = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 props = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    g_autofree char *address = NULL;

    if (gpu_has(gpu, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME))
        props.pNext = &pci;
    else if (gpu_has(gpu, VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME))
        props.pNext = &drm;
    vkGetPhysicalDeviceProperties2(gpu->physical, &props);
    if (props.pNext == &pci)
        address = g_strdup_printf("%04x:%02x:%02x.%x", pci.pciDomain, pci.pciBus, pci.pciDevice,
                                  pci.pciFunction);
    else if (drm.hasRender)
        address = address_of_node(drm.renderMajor, drm.renderMinor);
    if (address)
        set_address(object, address);
}

JsonObject *gpu_describe(const Gpu *gpu)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "name", gpu->properties.deviceName);
    json_object_set_string_member(object, "type", type_name(gpu->properties.deviceType));
    json_object_set_int_member(object, "vendor_id", gpu->properties.vendorID);
    json_object_set_int_member(object, "device_id", gpu->properties.deviceID);
    describe_driver(gpu, object);
    describe_place(gpu, object);
    json_object_set_array_member(object, "heaps", describe_heaps(gpu));
    json_object_set_array_member(object, "queues", describe_queues(gpu));
    return object;
}

static gboolean has_monotonic_clock(const Gpu *gpu)
{
    PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT get =
        (PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT)(void *)vkGetInstanceProcAddr(
            gpu->instance, "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT");
    VkTimeDomainEXT domains[16];
    uint32_t count = G_N_ELEMENTS(domains);

    if (!gpu_has(gpu, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME) || !get ||
        get(gpu->physical, &count, domains) < 0)
        return FALSE;
    for (uint32_t i = 0; i < count; i++) {
        if (domains[i] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT)
            return TRUE;
    }
    return FALSE;
}

void gpu_ask_abilities(const Gpu *gpu, JsonArray *list)
{
    static const struct {
        const char *extension;
        const char *name;
        const char *use;
    } all[] = {
        {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, "memory budget", "what a driver takes for itself"},
        {VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, "timeline semaphores", "zink, so OpenCL"},
        {VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME, "synchronization2", "newer programs"},
        {VK_EXT_IMAGE_DRM_FORMAT_MODIFIER_EXTENSION_NAME, "DRM format modifiers", "displays"},
        {VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME, "foreign queues", "displays"},
    };
    float period = gpu->properties.limits.timestampPeriod;
    g_autofree char *ticks = g_strdup_printf("%.3g ns a tick", (double)period);

    ability_add(list, "timestamps", gpu->properties.limits.timestampComputeAndGraphics, ticks,
                "the governor's measure of time");
    ability_add(list, "calibrated timestamps (CLOCK_MONOTONIC)", has_monotonic_clock(gpu), NULL,
                "when work of others began");
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        ability_add(list, all[i].name, gpu_has(gpu, all[i].extension), NULL, all[i].use);
}

int vulkan_main(const char *wanted)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) sheet = json_object_new();
    g_autoptr(JsonNode) node = json_node_alloc();
    g_autofree char *text = NULL;
    JsonArray *list = json_array_new();
    Gpu gpu;

    json_object_set_array_member(sheet, "abilities", list);
    if (!gpu_open(&gpu, wanted, &error)) {
        g_printerr("%s\n", error->message);
        return 1;
    }
    json_object_set_object_member(sheet, "gpu", gpu_describe(&gpu));
    gpu_ask_sharing(&gpu, list);
    gpu_ask_abilities(&gpu, list);
    json_node_init_object(node, sheet);
    text = json_to_string(node, FALSE);
    g_print("%s\n", text);
    gpu_close(&gpu);
    return 0;
}
