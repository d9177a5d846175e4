// SPDX-License-Identifier: MIT
/* Swapchains on a surface without a display: images are charged, presenting is counted or debited.
 */
#include "gpu.h"

#define SIDE 256

static const char *const extensions[] = {VK_KHR_SWAPCHAIN_EXTENSION_NAME, NULL};
static const struct gpu_options options = {.extensions = extensions, .surface = true};

static VkSurfaceKHR surface_of(struct gpu *gpu)
{
    VkHeadlessSurfaceCreateInfoEXT info = {.sType =
                                               VK_STRUCTURE_TYPE_HEADLESS_SURFACE_CREATE_INFO_EXT};
    PFN_vkCreateHeadlessSurfaceEXT create = (PFN_vkCreateHeadlessSurfaceEXT)vkGetInstanceProcAddr(
        gpu->instance, "vkCreateHeadlessSurfaceEXT");
    VkSurfaceKHR surface;
    VkBool32 supported;

    VK(create(gpu->instance, &info, NULL, &surface));
    VK(vkGetPhysicalDeviceSurfaceSupportKHR(gpu->physical, 0, surface, &supported));
    g_assert_true(supported);
    return surface;
}

static VkResult create_swapchain(struct gpu *gpu, VkSurfaceKHR surface, VkSwapchainKHR *swapchain)
{
    VkSwapchainCreateInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
        .surface = surface,
        .minImageCount = 3,
        .imageFormat = VK_FORMAT_B8G8R8A8_UNORM,
        .imageExtent = {SIDE, SIDE},
        .imageArrayLayers = 1,
        .imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT,
        .preTransform = VK_SURFACE_TRANSFORM_IDENTITY_BIT_KHR,
        .compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR,
        .presentMode = VK_PRESENT_MODE_FIFO_KHR,
    };

    return vkCreateSwapchainKHR(gpu->device, &info, NULL, swapchain);
}

static void test_charged(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkSurfaceKHR surface;
    VkSwapchainKHR swapchain;
    uint32_t images;
    uint64_t before;

    gpu_open(&gpu, &options);
    member = gpu_member();
    surface = surface_of(&gpu);
    before = member->used;
    VK(create_swapchain(&gpu, surface, &swapchain));
    VK(vkGetSwapchainImagesKHR(gpu.device, swapchain, &images, NULL));
    g_assert_cmpuint(member->used, ==, before + images * SIDE * SIDE * 4);
    vkDestroySwapchainKHR(gpu.device, swapchain, NULL);
    g_assert_cmpuint(member->used, ==, before);
    member->limit = before + SIDE * SIDE * 4;
    g_assert_cmpint(create_swapchain(&gpu, surface, &swapchain), ==, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    g_assert_cmpuint(member->used, ==, before);
    vkDestroySurfaceKHR(gpu.instance, surface, NULL);
    gpu_close(&gpu);
}

static void present(struct gpu *gpu, VkSwapchainKHR swapchain)
{
    VkFence acquired = gpu_fence(gpu);
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    VkSemaphore rendered;
    VkCommandBuffer commands = gpu_record(gpu, 1000);
    uint32_t image;
    VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &rendered,
    };
    VkPresentInfoKHR presents = {
        .sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR,
        .waitSemaphoreCount = 1,
        .pWaitSemaphores = &rendered,
        .swapchainCount = 1,
        .pSwapchains = &swapchain,
        .pImageIndices = &image,
    };

    VK(vkCreateSemaphore(gpu->device, &info, NULL, &rendered));
    VK(vkAcquireNextImageKHR(gpu->device, swapchain, UINT64_MAX, VK_NULL_HANDLE, acquired, &image));
    gpu_wait_fence(gpu, acquired);
    VK(vkQueueSubmit(gpu->queue, 1, &submit, VK_NULL_HANDLE));
    VK(vkQueuePresentKHR(gpu->queue, &presents));
    gpu->expected += gpu_gain(1000);
    VK(vkDeviceWaitIdle(gpu->device));
    vkDestroySemaphore(gpu->device, rendered, NULL);
    vkDestroyFence(gpu->device, acquired, NULL);
}

static void test_present(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkSurfaceKHR surface;
    VkSwapchainKHR swapchain;

    gpu_open(&gpu, &options);
    member = gpu_member();
    surface = surface_of(&gpu);
    VK(create_swapchain(&gpu, surface, &swapchain));
    for (int i = 0; i < 6; i++) {
        member->metered = i >= 3;
        present(&gpu, swapchain);
    }
    g_assert_cmpuint(member->counted, ==, 6);
    g_assert_cmpuint(member->begun, ==, 6);
    g_assert_cmpuint(member->ended, ==, 6);
    g_assert_cmpuint(member->deferred, ==, 0);
    gpu_check(&gpu);
    vkDestroySwapchainKHR(gpu.device, swapchain, NULL);
    vkDestroySurfaceKHR(gpu.instance, surface, NULL);
    gpu_close(&gpu);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/swapchain/charged", test_charged);
    g_test_add_func("/swapchain/present", test_present);
    return g_test_run();
}
