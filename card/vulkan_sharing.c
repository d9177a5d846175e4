/* SPDX-License-Identifier: MIT */
/*
 * Memory as a descriptor, which a vGPU's window and the guarded door are based on. The driver is
 * queried as virglrenderer does it; then the use is tried.
 */
#include "vulkan.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/dma-buf.h>

#define SIZE    (1024 * 1024)
#define PATTERN 0x5a

static VkExternalMemoryProperties promised_sharing(const Gpu *gpu,
                                                   VkExternalMemoryHandleTypeFlagBits type)
{
    VkPhysicalDeviceExternalBufferInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .handleType = type,
    };
    VkExternalBufferProperties props = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};

    vkGetPhysicalDeviceExternalBufferProperties(gpu->physical, &info, &props);
    return props.externalMemoryProperties;
}

static void ask_sharing(const Gpu *gpu, JsonArray *list, VkExternalMemoryHandleTypeFlagBits type,
                        const char *name, const char *use)
{
    VkExternalMemoryProperties props = promised_sharing(gpu, type);
    VkExternalMemoryFeatureFlags features = props.externalMemoryFeatures;
    g_autofree char *text = g_strdup_printf(
        "%s, %s%s",
        features & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT ? "exports" : "does not export",
        features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT ? "imports" : "does not import",
        features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT ? ", dedicated only" : "");

    ability_add(list, name, (features & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT) != 0, text, use);
}

/* A memory type with @flags; -1: none. */
static int find_type(const Gpu *gpu, VkMemoryPropertyFlags flags)
{
    for (guint i = 0; i < gpu->memory.memoryTypeCount; i++) {
        if ((gpu->memory.memoryTypes[i].propertyFlags & flags) == flags)
            return (int)i;
    }
    return -1;
}

static int export_memory(const Gpu *gpu, int memory_type, VkExternalMemoryHandleTypeFlagBits type,
                         VkDeviceMemory *memory)
{
    PFN_vkGetMemoryFdKHR get_fd =
        (PFN_vkGetMemoryFdKHR)(void *)vkGetDeviceProcAddr(gpu->device, "vkGetMemoryFdKHR");
    VkExportMemoryAllocateInfo export = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                         .handleTypes = type};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = &export,
                                 .allocationSize = SIZE,
                                 .memoryTypeIndex = (uint32_t)memory_type};
    VkMemoryGetFdInfoKHR fd_info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                    .handleType = type};
    int fd = -1;

    if (!get_fd || memory_type < 0 ||
        vkAllocateMemory(gpu->device, &info, NULL, memory) != VK_SUCCESS)
        return -1;
    fd_info.memory = *memory;
    if (get_fd(gpu->device, &fd_info, &fd) == VK_SUCCESS)
        return fd;
    vkFreeMemory(gpu->device, *memory, NULL);
    return -1;
}

static void sync_cpu(int fd, guint64 flags)
{
    struct dma_buf_sync sync = {.flags = flags | DMA_BUF_SYNC_WRITE};

    ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
}

/*
 * Written through the descriptor, read through Vulkan's mapping. NULL: right; otherwise what was
 * wrong.
 */
static const char *compare_maps(const Gpu *gpu, VkDeviceMemory memory, int fd)
{
    unsigned char *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const char *wrong = NULL;
    void *map;

    if (bytes == MAP_FAILED)
        return g_strerror(errno);
    sync_cpu(fd, DMA_BUF_SYNC_START);
    memset(bytes, PATTERN, SIZE);
    sync_cpu(fd, DMA_BUF_SYNC_END);
    if (vkMapMemory(gpu->device, memory, 0, SIZE, 0, &map) != VK_SUCCESS)
        wrong = "Vulkan does not map it";
    else if (((unsigned char *)map)[0] != PATTERN || ((unsigned char *)map)[SIZE - 1] != PATTERN)
        wrong = "what is written through it is not what Vulkan reads";
    munmap(bytes, SIZE);
    return wrong;
}

/* NULL: it works; otherwise what does not. */
static const char *try_map(const Gpu *gpu, VkMemoryPropertyFlags flags)
{
    VkDeviceMemory memory;
    int fd = export_memory(gpu, find_type(gpu, flags),
                           VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT, &memory);
    const char *wrong;

    if (fd < 0)
        return "it is not exported";
    wrong = compare_maps(gpu, memory, fd);
    close(fd);
    vkFreeMemory(gpu->device, memory, NULL);
    return wrong;
}

static const char *try_map_host(const Gpu *gpu)
{
    return try_map(gpu, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
}

static const char *try_map_device(const Gpu *gpu)
{
    return try_map(gpu, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
}

static const char *try_import(const Gpu *gpu)
{
    const VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
    int memory_type = find_type(gpu, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
    VkDeviceMemory memory, other;
    int fd = export_memory(gpu, memory_type, type, &memory);
    VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .handleType = type, .fd = fd};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = &import,
                                 .allocationSize = SIZE,
                                 .memoryTypeIndex = (uint32_t)memory_type};
    const char *wrong = NULL;

    if (fd < 0)
        return "it is not exported";
    if (vkAllocateMemory(gpu->device, &info, NULL, &other) == VK_SUCCESS) {
        /* The driver has taken ownership of the descriptor. */
        vkFreeMemory(gpu->device, other, NULL);
    } else {
        wrong = "it is refused";
        close(fd);
    }
    vkFreeMemory(gpu->device, memory, NULL);
    return wrong;
}

/* In the order of sharing_tries. */
static const char *(*const tries[])(const Gpu *gpu) = {try_map_host, try_map_device, try_import};

const SharingTry sharing_tries[NUM_SHARING_TRIES] = {
    {"host-visible dma-buf, mapped by the CPU", "memory that guests map"},
    {"device-local dma-buf, mapped by the CPU", "guests that map VRAM"},
    {"a dma-buf of its own is imported", "memory that programs of a guest share"},
};

int sharing_main(guint number, const char *wanted)
{
    g_autoptr(GError) error = NULL;
    const char *wrong;
    Gpu gpu;

    if (number >= NUM_SHARING_TRIES || !gpu_open(&gpu, wanted, &error)) {
        g_printerr("%s\n", error ? error->message : "no such try");
        return 1;
    }
    wrong = tries[number](&gpu);
    if (wrong)
        g_printerr("%s\n", wrong);
    gpu_close(&gpu);
    return wrong != NULL;
}

static void ask_sync_file(const Gpu *gpu, JsonArray *list)
{
    VkPhysicalDeviceExternalSemaphoreInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
        .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT};
    VkExternalSemaphoreProperties props = {.sType =
                                               VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};

    vkGetPhysicalDeviceExternalSemaphoreProperties(gpu->physical, &info, &props);
    ability_add(list, "semaphores as sync_file",
                (props.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT) !=
                    0,
                NULL, "fences that others wait for; displays");
}

void gpu_ask_sharing(const Gpu *gpu, JsonArray *list)
{
    ask_sharing(gpu, list, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT, "memory as dma-buf",
                "VMs, guarded containers");
    ask_sharing(gpu, list, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
                "memory as opaque descriptor", "memory that programs of a guest share");
    ask_sync_file(gpu, list);
}
