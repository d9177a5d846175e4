// SPDX-License-Identifier: MIT
/* Engines that a slice may not use are not offered, and cannot be used. */
#include <string.h>

#include "engines.h"
#include "governor_protocol.h"
#include "gpu.h"
#include "physical.h"

#define GRAPHICS VK_QUEUE_GRAPHICS_BIT
#define COMPUTE  VK_QUEUE_COMPUTE_BIT
#define TRANSFER VK_QUEUE_TRANSFER_BIT
#define SPARSE   VK_QUEUE_SPARSE_BINDING_BIT
#define DECODE   VK_QUEUE_VIDEO_DECODE_BIT_KHR
#define ENCODE   VK_QUEUE_VIDEO_ENCODE_BIT_KHR

/* A card with a driver that has video and a flag that none of the engines has. */
static struct {
    struct instance_dispatch next;
    uint32_t engines;
} card;
static struct layer_slice slice;
static struct layer_instance instance;
static const VkQueueFlags card_flags[] = {GRAPHICS | COMPUTE | TRANSFER | SPARSE, TRANSFER | SPARSE,
                                          DECODE | TRANSFER, ENCODE, VK_QUEUE_OPTICAL_FLOW_BIT_NV};

struct layer_slice *physical_slice(struct layer_instance *of, VkPhysicalDevice physical)
{
    (void)of;
    (void)physical;
    return &slice;
}

uint32_t governor_member_engines(const GovernorMember *member)
{
    (void)member;
    return card.engines;
}

struct dispatch_map dispatch_instances, dispatch_devices;

const void *chain_find(const void *chain, VkStructureType type)
{
    for (const VkBaseInStructure *in = chain; in; in = in->pNext) {
        if (in->sType == type)
            return in;
    }
    return NULL;
}

static VKAPI_ATTR void VKAPI_CALL get_families(VkPhysicalDevice physical, uint32_t *count,
                                               VkQueueFamilyProperties *families)
{
    (void)physical;
    *count = G_N_ELEMENTS(card_flags);
    for (guint i = 0; families && i < *count; i++)
        families[i] = (VkQueueFamilyProperties){.queueFlags = card_flags[i], .queueCount = 1};
}

static VKAPI_ATTR void VKAPI_CALL get_families2(VkPhysicalDevice physical, uint32_t *count,
                                                VkQueueFamilyProperties2 *families)
{
    (void)physical;
    for (guint i = 0; i < *count; i++) {
        VkQueueFamilyVideoPropertiesKHR *video = families[i].pNext;

        families[i].queueFamilyProperties.queueFlags = card_flags[i];
        if (video)
            video->videoCodecOperations = VK_VIDEO_CODEC_OPERATION_DECODE_H264_BIT_KHR |
                                          VK_VIDEO_CODEC_OPERATION_ENCODE_H264_BIT_KHR;
    }
}

static void test_flags(void)
{
    const uint32_t compute = GOVERNOR_ENGINE_COMPUTE, transfer = GOVERNOR_ENGINE_TRANSFER;

    for (guint i = 0; i < G_N_ELEMENTS(card_flags); i++)
        g_assert_cmphex(engines_allow(GOVERNOR_ENGINES_ALL, card_flags[i]), ==, card_flags[i]);
    g_assert_cmphex(engines_allow(compute, card_flags[0]), ==, COMPUTE | TRANSFER | SPARSE);
    g_assert_cmphex(engines_allow(compute, card_flags[1]), ==, 0);
    g_assert_cmphex(engines_allow(compute, card_flags[2]), ==, 0);
    g_assert_cmphex(engines_allow(transfer, card_flags[0]), ==, TRANSFER | SPARSE);
    g_assert_cmphex(engines_allow(transfer, GRAPHICS | COMPUTE), ==, TRANSFER);
    g_assert_cmphex(engines_allow(transfer, card_flags[3]), ==, 0);
    g_assert_cmphex(engines_allow(GOVERNOR_ENGINE_DECODE, card_flags[2]), ==, DECODE | TRANSFER);
    g_assert_cmphex(engines_allow(GOVERNOR_ENGINE_ENCODE, card_flags[3]), ==, ENCODE);
    g_assert_cmphex(engines_allow(GOVERNOR_ENGINES_ALL & ~GOVERNOR_ENGINE_ENCODE, card_flags[4]),
                    ==, 0);
}

static void use_card(uint32_t engines)
{
    /* A dispatchable handle begins with the loader's pointer. */
    static void *handle[] = {&handle};

    memset(&dispatch_instances, 0, sizeof(dispatch_instances));
    instance.next.GetPhysicalDeviceQueueFamilyProperties = get_families;
    instance.next.GetPhysicalDeviceQueueFamilyProperties2 = get_families2;
    dispatch_instances.slots[dispatch_hash(handle[0])].key = handle[0];
    dispatch_instances.slots[dispatch_hash(handle[0])].value = &instance;
    card.engines = engines;
    card.next = instance.next;
    instance.handle = (VkInstance)handle;
}

static void test_video(void)
{
    VkQueueFamilyVideoPropertiesKHR video[3] = {0};
    VkQueueFamilyProperties2 families[3] = {0};
    uint32_t count = 3;

    use_card(GOVERNOR_ENGINE_COMPUTE | GOVERNOR_ENGINE_DECODE);
    for (guint i = 0; i < count; i++) {
        video[i].sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_VIDEO_PROPERTIES_KHR;
        families[i].pNext = &video[i];
    }
    layer_GetPhysicalDeviceQueueFamilyProperties2((VkPhysicalDevice)instance.handle, &count,
                                                  families);
    g_assert_cmphex(families[0].queueFamilyProperties.queueFlags, ==, COMPUTE | TRANSFER | SPARSE);
    g_assert_cmphex(video[0].videoCodecOperations, ==, 0);
    g_assert_cmphex(families[2].queueFamilyProperties.queueFlags, ==, DECODE | TRANSFER);
    card.engines = GOVERNOR_ENGINE_TRANSFER;
    layer_GetPhysicalDeviceQueueFamilyProperties2((VkPhysicalDevice)instance.handle, &count,
                                                  families);
    g_assert_cmphex(families[2].queueFamilyProperties.queueFlags, ==, TRANSFER);
    g_assert_cmphex(video[2].videoCodecOperations, ==, 0);
}

static bool allows(uint32_t engines, uint32_t family)
{
    VkDeviceQueueCreateInfo queues[] = {{.queueFamilyIndex = 0}, {.queueFamilyIndex = family}};
    VkDeviceCreateInfo info = {.queueCreateInfoCount = 2, .pQueueCreateInfos = queues};
    struct layer_device device = {.instance = &instance, .slice = &slice};

    use_card(engines);
    return engines_allow_queues(&device, (VkPhysicalDevice)instance.handle, &info);
}

static void test_queues(void)
{
    g_assert_true(allows(GOVERNOR_ENGINES_ALL, 4));
    g_assert_true(allows(GOVERNOR_ENGINE_COMPUTE, 0));
    g_assert_false(allows(GOVERNOR_ENGINE_COMPUTE, 1));
    g_assert_true(allows(GOVERNOR_ENGINE_COMPUTE | GOVERNOR_ENGINE_TRANSFER, 1));
    g_assert_false(allows(GOVERNOR_ENGINE_COMPUTE | GOVERNOR_ENGINE_TRANSFER, 4));
    g_assert_false(allows(GOVERNOR_ENGINE_COMPUTE, 5));
}

/* From here on with the layer, on a software GPU with one family. */
static VkQueueFlags flags_of(const struct gpu *gpu)
{
    VkQueueFamilyProperties family;
    VkQueueFamilyProperties2 family2 = {.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2};
    uint32_t count = 1, count2 = 1;

    vkGetPhysicalDeviceQueueFamilyProperties(gpu->physical, &count, &family);
    vkGetPhysicalDeviceQueueFamilyProperties2(gpu->physical, &count2, &family2);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmphex(family.queueFlags, ==, family2.queueFamilyProperties.queueFlags);
    return family.queueFlags;
}

static VkResult create_device(const struct gpu *gpu)
{
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue};
    VkDevice device = VK_NULL_HANDLE;
    VkResult result = vkCreateDevice(gpu->physical, &info, NULL, &device);

    if (result == VK_SUCCESS)
        vkDestroyDevice(device, NULL);
    return result;
}

static void test_live_families(void)
{
    struct gpu gpu;
    VkQueueFlags before;

    gpu_open(&gpu, NULL);
    before = flags_of(&gpu);
    g_assert_cmphex(before & (GRAPHICS | COMPUTE), ==, GRAPHICS | COMPUTE);
    gpu_member()->engines = GOVERNOR_ENGINE_COMPUTE;
    g_assert_cmphex(flags_of(&gpu), ==, (before & ~(VkQueueFlags)GRAPHICS) | TRANSFER);
    VK(create_device(&gpu));
    gpu_member()->engines = GOVERNOR_ENGINE_DECODE;
    g_assert_cmphex(flags_of(&gpu), ==, 0);
    g_assert_cmpint(create_device(&gpu), ==, VK_ERROR_INITIALIZATION_FAILED);
    gpu_member()->engines = 0;
    g_assert_cmphex(flags_of(&gpu), ==, before);
    VK(create_device(&gpu));
    gpu_close(&gpu);
}

/* What needs no shader to be refused, nor more than is there to be let through. */
static VkResult create_graphics(const struct gpu *gpu, VkPipeline *pipeline)
{
    VkPipelineVertexInputStateCreateInfo input = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
    VkPipelineInputAssemblyStateCreateInfo assembly = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO};
    VkGraphicsPipelineLibraryCreateInfoEXT part = {
        .sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_LIBRARY_CREATE_INFO_EXT,
        .flags = VK_GRAPHICS_PIPELINE_LIBRARY_VERTEX_INPUT_INTERFACE_BIT_EXT};
    VkGraphicsPipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
                                         .pNext = &part,
                                         .flags = VK_PIPELINE_CREATE_LIBRARY_BIT_KHR,
                                         .pVertexInputState = &input,
                                         .pInputAssemblyState = &assembly};

    return vkCreateGraphicsPipelines(gpu->device, VK_NULL_HANDLE, 1, &info, NULL, pipeline);
}

static void test_live_pipelines(void)
{
    static const char *const extensions[] = {VK_KHR_PIPELINE_LIBRARY_EXTENSION_NAME,
                                             VK_EXT_GRAPHICS_PIPELINE_LIBRARY_EXTENSION_NAME, NULL};
    struct gpu gpu;
    VkPipeline pipeline = (VkPipeline)(gsize)1;

    gpu_open(&gpu, &(struct gpu_options){.extensions = extensions});
    gpu_member()->engines = GOVERNOR_ENGINE_COMPUTE;
    g_assert_cmpint(create_graphics(&gpu, &pipeline), ==, VK_ERROR_INITIALIZATION_FAILED);
    g_assert_true(pipeline == VK_NULL_HANDLE);
    /* With a pipeline for computing. */
    gpu_record(&gpu, 1);
    gpu_member()->engines = 0;
    VK(create_graphics(&gpu, &pipeline));
    vkDestroyPipeline(gpu.device, pipeline, NULL);
    gpu_close(&gpu);
}

static void test_live_compute(void)
{
    struct gpu gpu;
    VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    VkPipeline pipelines[] = {(VkPipeline)(gsize)1, (VkPipeline)(gsize)1};
    VkComputePipelineCreateInfo infos[] = {info, info};

    gpu_open(&gpu, NULL);
    gpu_member()->engines = GOVERNOR_ENGINE_TRANSFER;
    g_assert_cmpint(vkCreateComputePipelines(gpu.device, VK_NULL_HANDLE, 2, infos, NULL, pipelines),
                    ==, VK_ERROR_INITIALIZATION_FAILED);
    g_assert_true(!pipelines[0] && !pipelines[1]);
    gpu_member()->engines = 0;
    gpu_close(&gpu);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/engines/flags", test_flags);
    g_test_add_func("/engines/video", test_video);
    g_test_add_func("/engines/queues", test_queues);
    g_test_add_func("/engines/live-families", test_live_families);
    g_test_add_func("/engines/live-pipelines", test_live_pipelines);
    g_test_add_func("/engines/live-compute", test_live_compute);
    return g_test_run();
}
