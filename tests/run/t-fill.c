// SPDX-License-Identifier: MIT
/*
 * Takes GPU memory in pieces until there is no more, or as many as are asked for, and says how much
 * it has and how large the GPU says its memory is. With --hold it keeps it until its standard input
 * ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define PIECE_MIB 8u
#define MIB       (1u << 20)
#define GPUS      8u

static void fail(const char *what, long result)
{
    fprintf(stderr, "t-fill: %s failed: %ld\n", what, result);
    exit(EXIT_FAILURE);
}

static VkPhysicalDevice find_gpu(void)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    VkPhysicalDevice found[GPUS];
    uint32_t count = GPUS;
    VkInstance instance;
    VkResult result = vkCreateInstance(&info, NULL, &instance);

    if (result != VK_SUCCESS)
        fail("vkCreateInstance", result);
    result = vkEnumeratePhysicalDevices(instance, &count, found);
    if (result != VK_SUCCESS || count == 0)
        fail("vkEnumeratePhysicalDevices", result);
    return found[0];
}

static VkDevice open_gpu(VkPhysicalDevice physical)
{
    static const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    VkDevice device;
    VkResult result = vkCreateDevice(physical, &info, NULL, &device);

    if (result != VK_SUCCESS)
        fail("vkCreateDevice", result);
    return device;
}

static unsigned fill(VkDevice device, unsigned most)
{
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = PIECE_MIB * MIB};
    VkDeviceMemory memory;
    unsigned count = 0;

    while (count < most && vkAllocateMemory(device, &info, NULL, &memory) == VK_SUCCESS)
        count++;
    return count;
}

int main(int argc, char **argv)
{
    unsigned most = argc > 1 ? (unsigned)atoi(argv[1]) / PIECE_MIB : 0;
    VkPhysicalDevice physical = find_gpu();
    VkPhysicalDeviceMemoryProperties memory;
    VkDevice device = open_gpu(physical);

    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    printf("heap %llu MiB\n", (unsigned long long)memory.memoryHeaps[0].size / MIB);
    printf("has %u MiB\n", fill(device, most) * PIECE_MIB);
    fflush(stdout);
    while (argc > 2 && !strcmp(argv[2], "--hold") && getchar() != EOF)
        ;
    return EXIT_SUCCESS;
}
