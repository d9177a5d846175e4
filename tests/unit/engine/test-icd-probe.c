// SPDX-License-Identifier: MIT
/* What the probe asks a Vulkan driver, and which driver is chosen by it, over a stand-in for the
 * loader. */
#include "icd.h"
#include "vulkan_driver.h"

#include <string.h>
#include <sys/mman.h>
#include <vulkan/vulkan.h>

/* For each kind of handle: whether the extension exists, and the driver's answer for buffers. */
struct handle {
    const char *extension;
    VkExternalMemoryHandleTypeFlagBits type;
    bool there;
    VkExternalMemoryFeatureFlags features;
    VkExternalMemoryHandleTypeFlags from_imported;
};

#define DMA_BUF VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
#define OPAQUE  VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
#define EXPORTS VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT
#define IMPORTS VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT

static struct handle handles[] = {
    {.extension = "VK_EXT_external_memory_dma_buf", .type = DMA_BUF},
    {.extension = "VK_KHR_external_memory_fd", .type = OPAQUE},
};

static VkPhysicalDevice const the_device = (VkPhysicalDevice)0x1000;

/* How often the GPU cannot be seen yet. Probes are processes: it is shared with them. */
static int *resetting;

/* The driver is what its manifest is called. */
static void become_probe(const char *manifest)
{
    bool dma_buf = strstr(manifest, "dma-buf"), opaque = strstr(manifest, "opaque");

    handles[0].there = handles[1].there = true;
    handles[0].features = dma_buf ? EXPORTS | IMPORTS : IMPORTS;
    handles[0].from_imported = DMA_BUF;
    handles[1].features = opaque ? EXPORTS | IMPORTS : IMPORTS;
    handles[1].from_imported = OPAQUE;
}

VkResult vkCreateInstance(const VkInstanceCreateInfo *info G_GNUC_UNUSED,
                          const VkAllocationCallbacks *allocator G_GNUC_UNUSED,
                          VkInstance *instance)
{
    const char *manifest = g_getenv("VK_DRIVER_FILES");

    if (manifest[0] == '/')
        become_probe(manifest);
    if (*resetting > 0) {
        --*resetting;
        return VK_ERROR_INITIALIZATION_FAILED;
    }
    *instance = (VkInstance)0x2000;
    return VK_SUCCESS;
}

VkResult vkEnumeratePhysicalDevices(VkInstance instance G_GNUC_UNUSED, uint32_t *count,
                                    VkPhysicalDevice *devices)
{
    *count = 1;
    if (devices)
        devices[0] = the_device;
    return VK_SUCCESS;
}

VkResult vkEnumerateDeviceExtensionProperties(VkPhysicalDevice device G_GNUC_UNUSED,
                                              const char *layer G_GNUC_UNUSED, uint32_t *count,
                                              VkExtensionProperties *list)
{
    uint32_t room = *count;

    *count = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(handles); i++) {
        if (!handles[i].there)
            continue;
        if (list && *count < room)
            g_strlcpy(list[*count].extensionName, handles[i].extension,
                      sizeof(list->extensionName));
        ++*count;
    }
    return VK_SUCCESS;
}

void vkGetPhysicalDeviceProperties2(VkPhysicalDevice device G_GNUC_UNUSED,
                                    VkPhysicalDeviceProperties2 *props)
{
    props->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_CPU;
    g_strlcpy(props->properties.deviceName, "stand-in", sizeof(props->properties.deviceName));
}

void vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice device G_GNUC_UNUSED,
                                              uint32_t *count,
                                              VkQueueFamilyProperties *list G_GNUC_UNUSED)
{
    *count = 0;
}

void vkGetPhysicalDeviceFeatures(VkPhysicalDevice device G_GNUC_UNUSED,
                                 VkPhysicalDeviceFeatures *features)
{
    memset(features, 0, sizeof(*features));
}

/* virglrenderer's workers ask for buffers to copy from. */
void vkGetPhysicalDeviceExternalBufferProperties(VkPhysicalDevice device,
                                                 const VkPhysicalDeviceExternalBufferInfo *info,
                                                 VkExternalBufferProperties *props)
{
    g_assert_true(device == the_device);
    g_assert_cmphex(info->usage, ==, VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
    for (size_t i = 0; i < G_N_ELEMENTS(handles); i++) {
        if (handles[i].type != info->handleType)
            continue;
        g_assert_true(handles[i].there);
        props->externalMemoryProperties.externalMemoryFeatures = handles[i].features;
        props->externalMemoryProperties.exportFromImportedHandleTypes = handles[i].from_imported;
    }
}

static void assert_exports(bool dma_buf, bool opaque)
{
    struct icd_report report;

    g_assert_true(icd_probe("stand-in.json", &report));
    g_assert_cmpstr(report.name, ==, "stand-in");
    g_assert_cmpint(report.dma_buf, ==, dma_buf);
    g_assert_cmpint(report.opaque_fd, ==, opaque);
}

static void test_exports(void)
{
    struct handle *handle;

    assert_exports(false, false);
    become_probe("dma-buf opaque");
    assert_exports(true, true);
    for (size_t i = 0; i < G_N_ELEMENTS(handles); i++) {
        handle = &handles[i];
        become_probe("dma-buf opaque");
        handle->features = IMPORTS;
        assert_exports(i != 0, i != 1);
        become_probe("dma-buf opaque");
        handle->from_imported &= ~(VkExternalMemoryHandleTypeFlags)handle->type;
        assert_exports(i != 0, i != 1);
        become_probe("dma-buf opaque");
        handle->there = false;
        assert_exports(i != 0, i != 1);
    }
}

static void assert_chosen(const char *const *manifests, const char *expected)
{
    const struct gpu gpu = {.name = (char *)"soft:test", .soft = true};
    g_autoptr(GError) error = NULL;
    struct icd_report report;
    g_autofree char *chosen = icd_choose(&gpu, manifests, &report, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(chosen, ==, expected);
    g_assert_cmpint(report.dma_buf, ==, strstr(expected, "dma-buf") != NULL);
    g_assert_cmpint(report.opaque_fd, ==, strstr(expected, "opaque") != NULL);
}

static void test_choice(void)
{
    const char *const all[] = {"/none", "/opaque", "/dma-buf", "/dma-buf-opaque", NULL};
    const char *const none[] = {"/none", "/none-2", NULL};
    const char *const opaque[] = {"/none", "/opaque", "/opaque-2", NULL};

    assert_chosen(all, "/dma-buf");
    assert_chosen(none, "/none");
    assert_chosen(opaque, "/opaque");
}

/* A GPU that is being reset shows nothing. */
static void test_reset(void)
{
    struct options options = {
        .icd = (char *)"/dma-buf", .sysroot = (char *)"", .no_landlock = true};
    g_autoptr(GError) error = NULL;
    struct vulkan_driver driver;

    *resetting = 2;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_MESSAGE, "waiting: GPU soft:test*");
    g_assert_true(vulkan_driver_enter(&driver, "soft:test", &options, &error));
    g_test_assert_expected_messages();
    g_assert_no_error(error);
    g_assert_cmpint(*resetting, ==, 0);
    g_assert_cmpstr(driver.manifest, ==, "/dma-buf");
    g_assert_true(driver.report.dma_buf);
    vulkan_driver_clear(&driver);
}

int main(int argc, char **argv)
{
    resetting =
        mmap(NULL, sizeof(*resetting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(resetting != MAP_FAILED);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/icd-probe/exports", test_exports);
    g_test_add_func("/icd-probe/choice", test_choice);
    g_test_add_func("/icd-probe/reset", test_reset);
    return g_test_run();
}
