// SPDX-License-Identifier: MIT
/* Device memory: a limit that holds, charged once, given back. */

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"

#define MIB (1024u * 1024u)

static const char *const sharing[] = {
    VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
    VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
    NULL,
};

static void test_limit(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkDeviceMemory first, second, third;
    uint64_t before;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    before = member->used;
    member->limit = before + 10 * MIB;
    VK(gpu_allocate(&gpu, 6 * MIB, NULL, &first));
    g_assert_cmpuint(member->used, ==, before + 6 * MIB);
    g_assert_cmpint(gpu_allocate(&gpu, 5 * MIB, NULL, &second), ==, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    g_assert_cmpuint(member->used, ==, before + 6 * MIB);
    VK(gpu_allocate(&gpu, 4 * MIB, NULL, &second));
    g_assert_cmpint(gpu_allocate(&gpu, 1, NULL, &third), ==, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    vkFreeMemory(gpu.device, first, NULL);
    vkFreeMemory(gpu.device, VK_NULL_HANDLE, NULL);
    VK(gpu_allocate(&gpu, 6 * MIB, NULL, &third));
    vkFreeMemory(gpu.device, second, NULL);
    vkFreeMemory(gpu.device, third, NULL);
    g_assert_cmpuint(member->used, ==, before);
    gpu_close(&gpu);
}

/* What the driver refuses is given back. */
static void test_driver_refuses(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
        .fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
    };
    VkDeviceMemory memory;
    uint64_t before;

    gpu_open(&gpu, &(struct gpu_options){.extensions = sharing});
    member = gpu_member();
    before = member->used;
    g_assert_cmpint(gpu_allocate(&gpu, MIB, &import, &memory), !=, VK_SUCCESS);
    g_assert_cmpuint(member->reserved, ==, 2);
    g_assert_cmpuint(member->refused, ==, 0);
    g_assert_cmpuint(member->used, ==, before);
    close(import.fd);
    gpu_close(&gpu);
}

static void test_dedicated(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = 3 * MIB,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
    };
    VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
    VkMemoryAllocateFlagsInfo mask = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .pNext = &dedicated,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_MASK_BIT,
        .deviceMask = 1,
    };
    VkMemoryRequirements needs;
    VkDeviceMemory memory;
    uint64_t before;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    before = member->used;
    VK(vkCreateBuffer(gpu.device, &info, NULL, &dedicated.buffer));
    vkGetBufferMemoryRequirements(gpu.device, dedicated.buffer, &needs);
    VK(gpu_allocate(&gpu, needs.size, &mask, &memory));
    g_assert_cmpuint(member->used, ==, before + needs.size);
    VK(vkBindBufferMemory(gpu.device, dedicated.buffer, memory, 0));
    vkDestroyBuffer(gpu.device, dedicated.buffer, NULL);
    vkFreeMemory(gpu.device, memory, NULL);
    g_assert_cmpuint(member->used, ==, before);
    gpu_close(&gpu);
}

static int export_fd(struct gpu *gpu, VkDeviceMemory memory)
{
    VkMemoryGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
        .memory = memory,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    PFN_vkGetMemoryFdKHR get =
        (PFN_vkGetMemoryFdKHR)vkGetDeviceProcAddr(gpu->device, "vkGetMemoryFdKHR");
    int fd = -1;

    VK(get(gpu->device, &info, &fd));
    return fd;
}

static VkDeviceMemory import_fd(struct gpu *gpu, int fd, VkDeviceSize bytes)
{
    VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
        .fd = fd,
    };
    VkDeviceMemory memory;

    VK(gpu_allocate(gpu, bytes, &import, &memory));
    return memory;
}

static VkDeviceMemory exportable(struct gpu *gpu, VkDeviceSize bytes)
{
    VkExportMemoryAllocateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    VkDeviceMemory memory;

    VK(gpu_allocate(gpu, bytes, &export, &memory));
    return memory;
}

/* Charged once, until the last sharer frees it, whoever allocated it. */
static void test_export_import(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkDeviceMemory origin, copies[3];
    uint64_t before;

    gpu_open(&gpu, &(struct gpu_options){.extensions = sharing});
    member = gpu_member();
    before = member->used;
    origin = exportable(&gpu, 2 * MIB);
    g_assert_cmpuint(member->used, ==, before + 2 * MIB);
    /* There is nothing left for what has not been charged yet. */
    member->limit = member->used;
    copies[0] = import_fd(&gpu, export_fd(&gpu, origin), 2 * MIB);
    copies[1] = import_fd(&gpu, export_fd(&gpu, origin), 2 * MIB);
    copies[2] = import_fd(&gpu, export_fd(&gpu, origin), 2 * MIB);
    g_assert_cmpuint(member->used, ==, before + 2 * MIB);
    vkFreeMemory(gpu.device, origin, NULL);
    vkFreeMemory(gpu.device, copies[1], NULL);
    vkFreeMemory(gpu.device, copies[0], NULL);
    g_assert_cmpuint(member->used, ==, before + 2 * MIB);
    g_assert_cmpuint(member->exported, ==, 1);
    g_assert_cmpuint(member->forgotten, ==, 0);
    vkFreeMemory(gpu.device, copies[2], NULL);
    g_assert_cmpuint(member->forgotten, ==, 1);
    g_assert_cmpuint(member->imported, ==, 0);
    g_assert_cmpuint(member->used, ==, before);
    gpu_close(&gpu);
}

/* Exported by another: charged when it is first imported, and not beyond the limit. */
static void test_import_alone(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkDeviceMemory origin, copies[2];
    VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    uint64_t before;
    int fds[2];

    gpu_open(&gpu, &(struct gpu_options){.extensions = sharing});
    member = gpu_member();
    before = member->used;
    origin = exportable(&gpu, 2 * MIB);
    fds[0] = export_fd(&gpu, origin);
    fds[1] = dup(fds[0]);
    vkFreeMemory(gpu.device, origin, NULL);
    g_assert_cmpuint(member->used, ==, before);
    member->limit = before + 1 * MIB;
    import.fd = fds[0];
    g_assert_cmpint(gpu_allocate(&gpu, 2 * MIB, &import, &copies[0]), ==,
                    VK_ERROR_OUT_OF_DEVICE_MEMORY);
    member->limit = 0;
    copies[0] = import_fd(&gpu, fds[0], 2 * MIB);
    copies[1] = import_fd(&gpu, fds[1], 2 * MIB);
    g_assert_cmpuint(member->used, ==, before + 2 * MIB);
    g_assert_cmpuint(member->imported, ==, 1);
    vkFreeMemory(gpu.device, copies[0], NULL);
    vkFreeMemory(gpu.device, copies[1], NULL);
    g_assert_cmpuint(member->used, ==, before);
    gpu_close(&gpu);
}

static void test_host_pointer(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
    };
    VkDeviceMemory memory;
    uint64_t before;

    gpu_open(&gpu, &(struct gpu_options){.extensions = sharing});
    member = gpu_member();
    before = member->used;
    import.pHostPointer =
        mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VK(gpu_allocate(&gpu, MIB, &import, &memory));
    g_assert_cmpuint(member->used, ==, before);
    vkFreeMemory(gpu.device, memory, NULL);
    munmap(import.pHostPointer, MIB);
    gpu_close(&gpu);
}

static void test_spill(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkDeviceMemory memory;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    member->limit = member->used;
    g_assert_cmpint(gpu_allocate(&gpu, MIB, NULL, &memory), ==, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    member->spill_limit = MIB;
    VK(gpu_allocate(&gpu, MIB, NULL, &memory));
    g_assert_cmpuint(member->spilled, ==, MIB);
    /* Software Vulkan's device memory is the host's: it reports that it pages. */
    g_assert_cmpuint(member->pages, ==, 1);
    vkFreeMemory(gpu.device, memory, NULL);
    g_assert_cmpuint(member->spilled, ==, 0);
    gpu_close(&gpu);
}

/* What an application leaves behind when it destroys its device. */
static void test_left_behind(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkDeviceMemory memory;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    VK(gpu_allocate(&gpu, MIB, NULL, &memory));
    vkDestroyBuffer(gpu.device, gpu.buffer, NULL);
    gpu.buffer = NULL;
    /* Ours have been told all before the driver is. */
    vkDestroyPipeline(gpu.device, gpu.pipeline, NULL);
    vkDestroyPipelineLayout(gpu.device, gpu.layout, NULL);
    vkDestroyDescriptorPool(gpu.device, gpu.descriptors, NULL);
    vkDestroyDescriptorSetLayout(gpu.device, gpu.set_layout, NULL);
    vkDestroyCommandPool(gpu.device, gpu.pool, NULL);
    vkDestroyDevice(gpu.device, NULL);
    g_assert_cmpuint(member->used, ==, 0);
    vkDestroyInstance(gpu.instance, NULL);
}

static VkPhysicalDeviceMemoryProperties2
memory_of(struct gpu *gpu, VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget)
{
    VkPhysicalDeviceMemoryProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = budget};

    *budget = (VkPhysicalDeviceMemoryBudgetPropertiesEXT){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    vkGetPhysicalDeviceMemoryProperties2(gpu->physical, &properties);
    return properties;
}

static void test_heaps(void)
{
    struct gpu gpu;
    struct fake_member *member;
    VkPhysicalDeviceMemoryProperties plain, whole;
    VkPhysicalDeviceMemoryProperties2 both;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    uint64_t mine;

    gpu_open(&gpu, NULL);
    member = gpu_member();
    vkGetPhysicalDeviceMemoryProperties(gpu.physical, &whole);
    g_assert_cmpuint(whole.memoryHeaps[0].size, >, 512 * MIB);
    member->limit = 512 * MIB;
    mine = member->used;
    /* Others of the slice have some. */
    member->used += 100 * MIB;
    vkGetPhysicalDeviceMemoryProperties(gpu.physical, &plain);
    g_assert_cmpuint(plain.memoryHeaps[0].size, ==, 512 * MIB);
    both = memory_of(&gpu, &budget);
    g_assert_cmpuint(both.memoryProperties.memoryHeaps[0].size, ==, 512 * MIB);
    g_assert_cmpuint(budget.heapUsage[0], ==, mine);
    g_assert_cmpuint(budget.heapBudget[0], ==, 412 * MIB);
    /* A limit lowered below what is in use. */
    member->limit = 50 * MIB;
    memory_of(&gpu, &budget);
    g_assert_cmpuint(budget.heapUsage[0], ==, mine);
    g_assert_cmpuint(budget.heapBudget[0], ==, mine);
    /* A limit above the card is none. */
    member->limit = 1ull << 50;
    vkGetPhysicalDeviceMemoryProperties(gpu.physical, &plain);
    g_assert_cmpuint(plain.memoryHeaps[0].size, ==, whole.memoryHeaps[0].size);
    member->used -= 100 * MIB;
    gpu_close(&gpu);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    g_test_add_func("/memory/limit", test_limit);
    g_test_add_func("/memory/driver-refuses", test_driver_refuses);
    g_test_add_func("/memory/dedicated", test_dedicated);
    g_test_add_func("/memory/export-import", test_export_import);
    g_test_add_func("/memory/import-alone", test_import_alone);
    g_test_add_func("/memory/host-pointer", test_host_pointer);
    g_test_add_func("/memory/spill", test_spill);
    g_test_add_func("/memory/left-behind", test_left_behind);
    g_test_add_func("/memory/heaps", test_heaps);
    return g_test_run();
}
