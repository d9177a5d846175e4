// SPDX-License-Identifier: MIT
/* The layer is present, and otherwise indistinguishable from its absence. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

/* Ours by the device's look-up, under each of its names, if it exists at all. */
static void test_lookups(void)
{
    static const char *const ours[] = {
        "vkDeviceWaitIdle",      "vkQueueSubmit",       "vkQueueSubmit2",
        "vkQueueSubmit2KHR",     "vkQueueBindSparse",   "vkQueueWaitIdle",
        "vkQueuePresentKHR",     "vkCmdBeginRendering", "vkCmdBeginRenderingKHR",
        "vkAllocateMemory",      "vkFreeMemory",        "vkGetMemoryFdKHR",
        "vkCreateSemaphore",     "vkDestroySemaphore",  "vkCreateSwapchainKHR",
        "vkDestroySwapchainKHR",
    };
    static const char *const not_enabled[] = {"vkGetMemoryFdKHR", "vkQueuePresentKHR",
                                              "vkCreateSwapchainKHR", "vkImportSemaphoreFdKHR"};
    static const char *const extensions[] = {
        VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME, VK_KHR_DYNAMIC_RENDERING_EXTENSION_NAME,
        VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, VK_KHR_SWAPCHAIN_EXTENSION_NAME, NULL};
    struct gpu gpu;

    gpu_open(&gpu, &(struct gpu_options){.extensions = extensions, .surface = true});
    for (gsize i = 0; i < G_N_ELEMENTS(ours); i++) {
        if (!gpu_is_of_layer(vkGetDeviceProcAddr(gpu.device, ours[i])))
            g_error("%s is not the layer's", ours[i]);
    }
    g_assert_false(gpu_is_of_layer(vkGetDeviceProcAddr(gpu.device, "vkCreateBuffer")));
    g_assert_null(vkGetDeviceProcAddr(gpu.device, "vkCreateInstance"));
    g_assert_null(vkGetDeviceProcAddr(gpu.device, "vkNoSuchCommand"));
    gpu_close(&gpu);
    /* A command that is missing without the layer is missing with it. */
    gpu_open(&gpu, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(not_enabled); i++)
        g_assert_null(vkGetDeviceProcAddr(gpu.device, not_enabled[i]));
    gpu_close(&gpu);
}

/* Heaps by each of the names, through the instance's look-up. */
static void test_instance_lookups(void)
{
    struct gpu gpu;
    PFN_vkGetPhysicalDeviceMemoryProperties plain;
    PFN_vkGetPhysicalDeviceMemoryProperties2 two, two_khr;
    VkPhysicalDeviceMemoryProperties old;
    VkPhysicalDeviceMemoryProperties2 new = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};

    static const char *const extensions[] = {VK_KHR_GET_PHYSICAL_DEVICE_PROPERTIES_2_EXTENSION_NAME,
                                             NULL};

    gpu_open(&gpu, &(struct gpu_options){.instance_extensions = extensions});
    gpu_member()->limit = 100 << 20;
    plain = (PFN_vkGetPhysicalDeviceMemoryProperties)vkGetInstanceProcAddr(
        gpu.instance, "vkGetPhysicalDeviceMemoryProperties");
    two = (PFN_vkGetPhysicalDeviceMemoryProperties2)vkGetInstanceProcAddr(
        gpu.instance, "vkGetPhysicalDeviceMemoryProperties2");
    two_khr = (PFN_vkGetPhysicalDeviceMemoryProperties2)vkGetInstanceProcAddr(
        gpu.instance, "vkGetPhysicalDeviceMemoryProperties2KHR");
    plain(gpu.physical, &old);
    g_assert_cmpuint(old.memoryHeaps[0].size, ==, 100 << 20);
    two(gpu.physical, &new);
    g_assert_cmpuint(new.memoryProperties.memoryHeaps[0].size, ==, 100 << 20);
    new.memoryProperties.memoryHeaps[0].size = 0;
    two_khr(gpu.physical, &new);
    g_assert_cmpuint(new.memoryProperties.memoryHeaps[0].size, ==, 100 << 20);
    gpu_close(&gpu);
}

/* vulkaninfo's output, without values that differ from run to run. */
static char *vulkaninfo(gboolean with_layer, const char *limit)
{
    g_auto(GStrv) environment = g_get_environ();
    const char *const command[] = {"vulkaninfo", NULL};
    char *out = NULL;
    int status = -1;

    if (!with_layer)
        environment = g_environ_setenv(environment, "VGPU_GOVERNOR", "0", TRUE);
    if (limit)
        environment = g_environ_setenv(environment, "FAKE_MEMBER_LIMIT", limit, TRUE);
    /* The layer is sanitized, the program is not. */
    environment = g_environ_setenv(environment, "LD_PRELOAD", ASAN_LIBRARY, TRUE);
    environment = g_environ_setenv(environment, "ASAN_OPTIONS", "detect_leaks=0", TRUE);
    g_assert_true(g_spawn_sync(NULL, (char **)command, environment,
                               G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out,
                               NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    return out;
}

static gboolean differs_by_nature(const char *line)
{
    return strstr(line, "usage") || strstr(line, "budget") || strstr(line, "VGPU_governor") ||
           strstr(line, "Instance Layers: count") || strstr(line, "getpid");
}

/* Lines that matter, one below the other. The layer's own entry, in the list of layers, is not
 * among them. */
static char *lines_that_matter(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    GString *kept = g_string_new(NULL);
    gboolean of_layers = FALSE;

    for (char **line = lines; *line; line++) {
        if (g_str_has_prefix(*line, "Layers:"))
            of_layers = TRUE;
        if (g_str_has_prefix(*line, "Device Properties") || g_str_has_prefix(*line, "Presentable"))
            of_layers = FALSE;
        if (!of_layers && !differs_by_nature(*line))
            g_string_append_printf(kept, "%s\n", *line);
    }
    return g_string_free(kept, FALSE);
}

static void test_vulkaninfo(void)
{
    g_autofree char *without = vulkaninfo(FALSE, NULL);
    g_autofree char *with = vulkaninfo(TRUE, NULL);
    g_autofree char *limited = vulkaninfo(TRUE, "67108864");
    g_autofree char *expected = lines_that_matter(without);
    g_autofree char *seen = lines_that_matter(with);

    /* It is present when it is enabled. */
    g_assert_nonnull(strstr(limited, "size   = 67108864"));
    g_assert_null(strstr(without, "size   = 67108864"));
    g_assert_cmpuint(strlen(expected), >, 10000);
    g_assert_cmpstr(seen, ==, expected);
}

static VkResult create_alone(void)
{
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkInstance instance;
    VkResult result = vkCreateInstance(&info, NULL, &instance);

    if (result == VK_SUCCESS)
        vkDestroyInstance(instance, NULL);
    return result;
}

static void test_required(void)
{
    if (g_test_subprocess()) {
        g_setenv("FAKE_MEMBER_REFUSE", "1", TRUE);
        g_setenv("VGPU_GOVERNOR_REQUIRED", "0", TRUE);
        g_assert_cmpint(create_alone(), ==, VK_SUCCESS);
        g_setenv("VGPU_GOVERNOR_REQUIRED", "1", TRUE);
        g_assert_cmpint(create_alone(), ==, VK_ERROR_INITIALIZATION_FAILED);
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*vgpu-governor: cannot join the slice at *: No such file*");
}

/* One membership for any number of instances; nothing is left when the last is destroyed. */
static void test_instances(void)
{
    struct gpu one, two;
    struct fake_member *member;

    gpu_open(&one, NULL);
    member = gpu_member();
    gpu_open(&two, NULL);
    g_assert_cmpuint(member->joined, ==, 1);
    gpu_close(&two);
    g_assert_cmpuint(member->left, ==, 0);
    g_assert_cmpuint(member->used, >, 0);
    vkDestroyInstance(NULL, NULL);
    vkDestroyDevice(NULL, NULL);
    gpu_close(&one);
}

static void test_fork(void)
{
    struct gpu gpu;
    pid_t child;
    int status;

    gpu_open(&gpu, NULL);
    child = fork();
    if (child == 0)
        _exit(create_alone() == VK_SUCCESS ? 0 : 1);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    gpu_close(&gpu);
}

/* Of Vulkan 1.0 there is enough to measure by. */
static void test_vulkan_1_0(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkCommandBuffer commands;
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
    };

    gpu_open(&gpu, &(struct gpu_options){.api_version = VK_API_VERSION_1_0});
    member = gpu_member();
    member->metered = true;
    commands = gpu_record(&gpu, 1000);
    VK(vkQueueSubmit(gpu.queue, 1, &info, VK_NULL_HANDLE));
    gpu.expected = gpu_gain(1000);
    gpu_check(&gpu);
    g_assert_cmpuint(member->ended, ==, 1);
    gpu_close(&gpu);
}

/* Against the rules, but nothing of the layer's may suffer from it. */
static void test_destroyed_with_work(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkCommandBuffer commands;
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
    };

    gpu_open(&gpu, NULL);
    member = gpu_member();
    member->metered = true;
    commands = gpu_record(&gpu, 1000000);
    for (int i = 0; i < 5; i++)
        VK(vkQueueSubmit(gpu.queue, 1, &info, VK_NULL_HANDLE));
    vkDestroyDevice(gpu.device, NULL);
    g_assert_cmpuint(member->begun, ==, 5);
    g_assert_cmpuint(member->ended, ==, 5);
    vkDestroyInstance(gpu.instance, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/layer/lookups", test_lookups);
    g_test_add_func("/layer/instance-lookups", test_instance_lookups);
    g_test_add_func("/layer/vulkaninfo", test_vulkaninfo);
    g_test_add_func("/layer/required", test_required);
    g_test_add_func("/layer/instances", test_instances);
    g_test_add_func("/layer/fork", test_fork);
    g_test_add_func("/layer/vulkan-1.0", test_vulkan_1_0);
    g_test_add_func("/layer/destroyed-with-work", test_destroyed_with_work);
    return g_test_run();
}
