// SPDX-License-Identifier: MIT
#include "gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "spin.h"

/* The driver's leaks are not ours; the layer's own are seen. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libvulkan_lvp.so\nleak:libLLVM\nleak:libgallium\nleak:libVkLayer_khronos\n";
}

__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

void gpu_environment(void)
{
    g_setenv("VK_DRIVER_FILES", "/usr/share/vulkan/icd.d/lvp_icd.json", TRUE);
    g_setenv("VK_IMPLICIT_LAYER_PATH", LAYER_DIR, TRUE);
    g_setenv("VGPU_GOVERNOR", "1", FALSE);
    g_setenv("NODEVICE_SELECT", "1", TRUE);
    g_setenv("LP_NUM_THREADS", "1", FALSE);
}

struct fake_member *gpu_member(void)
{
    void *layer = dlopen(LAYER_DIR "/libvgpu_governor.so", RTLD_NOW | RTLD_NOLOAD);
    struct fake_member *member;

    if (!layer)
        return NULL;
    member = dlsym(layer, FAKE_MEMBER_SYMBOL);
    dlclose(layer);
    return member;
}

gboolean gpu_is_of_layer(PFN_vkVoidFunction function)
{
    Dl_info info;

    return function && dladdr((void *)(gsize)function, &info) && info.dli_fname &&
           strstr(info.dli_fname, "libvgpu_governor.so");
}

static VKAPI_ATTR VkBool32 VKAPI_CALL complain(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                               VkDebugUtilsMessageTypeFlagsEXT types,
                                               const VkDebugUtilsMessengerCallbackDataEXT *data,
                                               void *user)
{
    struct gpu *gpu = user;

    (void)severity;
    (void)types;
    gpu->complaints++;
    g_test_message("validation: %s", data->pMessage);
    return VK_FALSE;
}

static uint32_t count(const char *const *list)
{
    uint32_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static void create_messenger(struct gpu *gpu, const VkDebugUtilsMessengerCreateInfoEXT *info)
{
    PFN_vkCreateDebugUtilsMessengerEXT create =
        (PFN_vkCreateDebugUtilsMessengerEXT)vkGetInstanceProcAddr(gpu->instance,
                                                                  "vkCreateDebugUtilsMessengerEXT");

    VK(create(gpu->instance, info, NULL, &gpu->messenger));
}

static void create_instance(struct gpu *gpu, const struct gpu_options *options)
{
    static const char *const debug_utils[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, NULL};
    static const char *const surfaces[] = {VK_KHR_SURFACE_EXTENSION_NAME,
                                           VK_EXT_HEADLESS_SURFACE_EXTENSION_NAME, NULL};
    const char *const *extensions = options->layers    ? debug_utils
                                    : options->surface ? surfaces
                                                       : options->instance_extensions;
    static const VkValidationFeatureEnableEXT hazards =
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    static const VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .enabledValidationFeatureCount = 1,
        .pEnabledValidationFeatures = &hazards,
    };
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .pNext = &features,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = complain,
        .pUserData = gpu,
    };
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .apiVersion = options->api_version ? options->api_version : VK_API_VERSION_1_3,
    };
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = options->layers ? &messenger : NULL,
        .pApplicationInfo = &application,
        .enabledLayerCount = count(options->layers),
        .ppEnabledLayerNames = options->layers,
        .enabledExtensionCount = count(extensions),
        .ppEnabledExtensionNames = extensions,
    };
    uint32_t devices = 1;

    VK(vkCreateInstance(&info, NULL, &gpu->instance));
    messenger.pNext = NULL;
    if (options->layers)
        create_messenger(gpu, &messenger);
    VK(vkEnumeratePhysicalDevices(gpu->instance, &devices, &gpu->physical));
}

static void create_device(struct gpu *gpu, const struct gpu_options *options)
{
    float priority = 1;
    VkPhysicalDeviceVulkan13Features v13 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
        .synchronization2 = VK_TRUE,
        .dynamicRendering = VK_TRUE,
    };
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = &v13,
        .timelineSemaphore = VK_TRUE,
    };
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkPhysicalDeviceFeatures features = {.sparseBinding = VK_TRUE};
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = options->api_version ? NULL : &v12,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = count(options->extensions),
        .ppEnabledExtensionNames = options->extensions,
        .pEnabledFeatures = &features,
    };

    VK(vkCreateDevice(gpu->physical, &info, NULL, &gpu->device));
    vkGetDeviceQueue(gpu->device, 0, 0, &gpu->queue);
}

VkResult gpu_allocate(struct gpu *gpu, VkDeviceSize bytes, const void *chain,
                      VkDeviceMemory *memory)
{
    VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = chain,
        .allocationSize = bytes,
        .memoryTypeIndex = gpu->memory_type,
    };

    return vkAllocateMemory(gpu->device, &info, NULL, memory);
}

static void create_buffer(struct gpu *gpu)
{
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = GPU_NUMBERS * sizeof(uint32_t),
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
    };
    VkMemoryRequirements needs;
    void *mapped;

    VK(vkCreateBuffer(gpu->device, &info, NULL, &gpu->buffer));
    vkGetBufferMemoryRequirements(gpu->device, gpu->buffer, &needs);
    VK(gpu_allocate(gpu, needs.size, NULL, &gpu->memory));
    VK(vkBindBufferMemory(gpu->device, gpu->buffer, gpu->memory, 0));
    VK(vkMapMemory(gpu->device, gpu->memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    gpu->numbers = memset(mapped, 0, (size_t)info.size);
}

static void create_set(struct gpu *gpu)
{
    VkDescriptorSetLayoutBinding binding = {
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .descriptorCount = 1,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
    };
    VkDescriptorSetLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 1,
        .pBindings = &binding,
    };
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
    VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    VkDescriptorSetAllocateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    VkDescriptorBufferInfo buffer = {.buffer = gpu->buffer, .range = VK_WHOLE_SIZE};
    VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .descriptorCount = 1,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = &buffer,
    };

    VK(vkCreateDescriptorSetLayout(gpu->device, &layout, NULL, &gpu->set_layout));
    VK(vkCreateDescriptorPool(gpu->device, &pool, NULL, &gpu->descriptors));
    set.descriptorPool = gpu->descriptors;
    set.descriptorSetCount = 1;
    set.pSetLayouts = &gpu->set_layout;
    VK(vkAllocateDescriptorSets(gpu->device, &set, &gpu->set));
    write.dstSet = gpu->set;
    vkUpdateDescriptorSets(gpu->device, 1, &write, 0, NULL);
}

static void create_pipeline(struct gpu *gpu)
{
    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(uint32_t)};
    VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &gpu->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range,
    };
    VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = sizeof(spin_spirv),
        .pCode = spin_spirv,
    };
    VkComputePipelineCreateInfo pipeline = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"},
    };

    VK(vkCreatePipelineLayout(gpu->device, &layout, NULL, &gpu->layout));
    VK(vkCreateShaderModule(gpu->device, &code, NULL, &pipeline.stage.module));
    pipeline.layout = gpu->layout;
    VK(vkCreateComputePipelines(gpu->device, NULL, 1, &pipeline, NULL, &gpu->pipeline));
    vkDestroyShaderModule(gpu->device, pipeline.stage.module, NULL);
}

void gpu_open(struct gpu *gpu, const struct gpu_options *options)
{
    static const struct gpu_options plain;
    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
    };

    *gpu = (struct gpu){0};
    create_instance(gpu, options ? options : &plain);
    create_device(gpu, options ? options : &plain);
    VK(vkCreateCommandPool(gpu->device, &pool, NULL, &gpu->pool));
    create_buffer(gpu);
    create_set(gpu);
    create_pipeline(gpu);
}

void gpu_close(struct gpu *gpu)
{
    VK(vkDeviceWaitIdle(gpu->device));
    vkDestroyPipeline(gpu->device, gpu->pipeline, NULL);
    vkDestroyPipelineLayout(gpu->device, gpu->layout, NULL);
    vkDestroyDescriptorPool(gpu->device, gpu->descriptors, NULL);
    vkDestroyDescriptorSetLayout(gpu->device, gpu->set_layout, NULL);
    vkDestroyBuffer(gpu->device, gpu->buffer, NULL);
    vkFreeMemory(gpu->device, gpu->memory, NULL);
    vkDestroyCommandPool(gpu->device, gpu->pool, NULL);
    vkDestroyDevice(gpu->device, NULL);
    if (gpu->messenger) {
        PFN_vkDestroyDebugUtilsMessengerEXT destroy =
            (PFN_vkDestroyDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
                gpu->instance, "vkDestroyDebugUtilsMessengerEXT");

        destroy(gpu->instance, gpu->messenger, NULL);
    }
    vkDestroyInstance(gpu->instance, NULL);
}
