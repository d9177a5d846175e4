// SPDX-License-Identifier: MIT
#include "mock_driver.h"

#include <dlfcn.h>
#include <string.h>

/* What a dispatchable handle points to. */
struct object {
    void *key;
};

static char instance_key, device_key;
static struct object instance = {&instance_key}, physical = {&instance_key};
static struct object device = {&device_key};
static struct object queues[MOCK_FAMILIES + 1];
static guint calls;
static gboolean refuses; /* each device, see mock_refused() */
static guint refused;

/* In place of any command. */
static VkResult below(void)
{
    calls++;
    return VK_SUCCESS;
}

guint mock_calls(void)
{
    return calls;
}

VkQueue mock_queue(guint index)
{
    return (VkQueue)&queues[index];
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkInstance *handle)
{
    (void)info;
    (void)allocator;
    *handle = (VkInstance)&instance;
    return VK_SUCCESS;
}

/* As a layer does that passes the call on. */
static void take_link(const VkDeviceCreateInfo *info)
{
    for (const VkLayerDeviceCreateInfo *in = info->pNext; in; in = in->pNext) {
        VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)in;

        if (link->function != VK_LAYER_LINK_INFO)
            continue;
        g_assert_nonnull(link->u.pLayerInfo);
        link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice of,
                                                    const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkDevice *handle)
{
    (void)of;
    (void)allocator;
    if (refuses) {
        take_link(info);
        refused++;
        return VK_ERROR_FEATURE_NOT_PRESENT;
    }
    *handle = (VkDevice)&device;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL get_extensions(VkPhysicalDevice of, const char *layer,
                                                     uint32_t *count, VkExtensionProperties *list)
{
    (void)of;
    (void)layer;
    *count = refuses;
    if (list && refuses)
        strcpy(list->extensionName, VK_KHR_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL get_domains(VkPhysicalDevice of, uint32_t *count,
                                                  VkTimeDomainKHR *domains)
{
    (void)of;
    *count = 2;
    domains[0] = VK_TIME_DOMAIN_DEVICE_KHR;
    domains[1] = VK_TIME_DOMAIN_CLOCK_MONOTONIC_KHR;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice of,
                                                 VkPhysicalDeviceProperties *properties)
{
    (void)of;
    *properties = (VkPhysicalDeviceProperties){.limits.timestampPeriod = 1};
}

/* Without timestamps: these need memory. */
static VKAPI_ATTR void VKAPI_CALL get_families(VkPhysicalDevice of, uint32_t *count,
                                               VkQueueFamilyProperties *families)
{
    static const VkQueueFlags flags[MOCK_FAMILIES] = {
        VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_PROTECTED_BIT,
        VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT, VK_QUEUE_VIDEO_DECODE_BIT_KHR};

    (void)of;
    *count = MOCK_FAMILIES;
    for (guint i = 0; i < MOCK_FAMILIES; i++)
        families[i] = (VkQueueFamilyProperties){.queueFlags = flags[i], .queueCount = 1};
}

static VKAPI_ATTR void VKAPI_CALL get_memory(VkPhysicalDevice of,
                                             VkPhysicalDeviceMemoryProperties *properties)
{
    (void)of;
    *properties = (VkPhysicalDeviceMemoryProperties){
        .memoryTypeCount = 1,
        .memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
        .memoryHeapCount = 1,
        .memoryHeaps[0] = {.size = 1 << 30, .flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT},
    };
}

static VKAPI_ATTR void VKAPI_CALL get_queue(VkDevice of, uint32_t family, uint32_t index,
                                            VkQueue *queue)
{
    (void)of;
    (void)index;
    *queue = mock_queue(family);
}

static VKAPI_ATTR void VKAPI_CALL get_queue2(VkDevice of, const VkDeviceQueueInfo2 *info,
                                             VkQueue *queue)
{
    (void)of;
    *queue = mock_queue(info->flags ? MOCK_FAMILIES : info->queueFamilyIndex);
}

static PFN_vkVoidFunction find(const char *name)
{
    static const struct {
        const char *name;
        PFN_vkVoidFunction function;
    } own[] = {
        {"vkCreateInstance", (PFN_vkVoidFunction)create_instance},
        {"vkCreateDevice", (PFN_vkVoidFunction)create_device},
        {"vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction)get_properties},
        {"vkGetPhysicalDeviceQueueFamilyProperties", (PFN_vkVoidFunction)get_families},
        {"vkGetPhysicalDeviceMemoryProperties", (PFN_vkVoidFunction)get_memory},
        {"vkEnumerateDeviceExtensionProperties", (PFN_vkVoidFunction)get_extensions},
        {"vkGetPhysicalDeviceCalibrateableTimeDomainsKHR", (PFN_vkVoidFunction)get_domains},
        {"vkGetDeviceQueue", (PFN_vkVoidFunction)get_queue},
        {"vkGetDeviceQueue2", (PFN_vkVoidFunction)get_queue2},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(own); i++) {
        if (g_str_equal(own[i].name, name))
            return own[i].function;
    }
    return (PFN_vkVoidFunction)below;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_proc(VkInstance of, const char *name)
{
    (void)of;
    return find(name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice of, const char *name)
{
    (void)of;
    return find(name);
}

static VKAPI_ATTR VkResult VKAPI_CALL set_loader_data(VkDevice of, void *object)
{
    ((struct object *)object)->key = ((struct object *)of)->key;
    return VK_SUCCESS;
}

static void make_instance(struct mock_driver *mock)
{
    VkLayerInstanceLink link = {.pfnNextGetInstanceProcAddr = get_instance_proc};
    VkLayerInstanceCreateInfo chain = {
        .sType = VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO,
        .function = VK_LAYER_LINK_INFO,
        .u.pLayerInfo = &link,
    };
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pNext = &chain};
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)mock->get_instance(NULL, "vkCreateInstance");

    g_assert_cmpint(create(&info, NULL, &mock->instance), ==, VK_SUCCESS);
}

static VkResult make_device(struct mock_driver *mock)
{
    float priority = 1;
    VkLayerDeviceLink below = {.pfnNextGetInstanceProcAddr = get_instance_proc,
                               .pfnNextGetDeviceProcAddr = get_device_proc};
    VkLayerDeviceLink link = {.pNext = &below,
                              .pfnNextGetInstanceProcAddr = get_instance_proc,
                              .pfnNextGetDeviceProcAddr = get_device_proc};
    VkLayerDeviceCreateInfo data = {
        .sType = VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO,
        .function = VK_LOADER_DATA_CALLBACK,
        .u.pfnSetDeviceLoaderData = set_loader_data,
    };
    VkLayerDeviceCreateInfo chain = {
        .sType = VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO,
        .pNext = &data,
        .function = VK_LAYER_LINK_INFO,
        .u.pLayerInfo = &link,
    };
    VkDeviceQueueCreateInfo families[MOCK_FAMILIES + 1];
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &chain,
        .queueCreateInfoCount = MOCK_FAMILIES + 1,
        .pQueueCreateInfos = families,
    };
    PFN_vkCreateDevice create =
        (PFN_vkCreateDevice)mock->get_instance(mock->instance, "vkCreateDevice");

    for (guint i = 0; i <= MOCK_FAMILIES; i++) {
        families[i] = (VkDeviceQueueCreateInfo){
            .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
            .flags = i < MOCK_FAMILIES ? 0 : VK_DEVICE_QUEUE_CREATE_PROTECTED_BIT,
            .queueFamilyIndex = i % MOCK_FAMILIES,
            .queueCount = 1,
            .pQueuePriorities = &priority,
        };
    }
    return create((VkPhysicalDevice)&physical, &info, NULL, &mock->device);
}

void mock_open(struct mock_driver *mock)
{
    VkNegotiateLayerInterface interface = {.sType = LAYER_NEGOTIATE_INTERFACE_STRUCT,
                                           .loaderLayerInterfaceVersion = 2};
    PFN_vkNegotiateLoaderLayerInterfaceVersion negotiate;

    mock->library = dlopen(LAYER_DIR "/libvgpu_governor.so", RTLD_NOW | RTLD_LOCAL);
    g_assert_nonnull(mock->library);
    negotiate = (PFN_vkNegotiateLoaderLayerInterfaceVersion)dlsym(
        mock->library, "vkNegotiateLoaderLayerInterfaceVersion");
    g_assert_cmpint(negotiate(&interface), ==, VK_SUCCESS);
    mock->get_instance = interface.pfnGetInstanceProcAddr;
    mock->get_device = interface.pfnGetDeviceProcAddr;
    make_instance(mock);
    g_assert_cmpint(make_device(mock), ==, VK_SUCCESS);
}

VkResult mock_refused(struct mock_driver *mock, guint *calls_made)
{
    VkResult result;

    refused = 0;
    refuses = TRUE;
    result = make_device(mock);
    refuses = FALSE;
    *calls_made = refused;
    return result;
}

void mock_close(struct mock_driver *mock)
{
    PFN_vkDestroyDevice destroy_device =
        (PFN_vkDestroyDevice)mock->get_device(mock->device, "vkDestroyDevice");
    PFN_vkDestroyInstance destroy_instance =
        (PFN_vkDestroyInstance)mock->get_instance(mock->instance, "vkDestroyInstance");

    destroy_device(mock->device, NULL);
    destroy_instance(mock->instance, NULL);
    dlclose(mock->library);
}
