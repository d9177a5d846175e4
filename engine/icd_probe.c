// SPDX-License-Identifier: MIT
#include "icd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

/* Loading a driver takes a fraction of a second, and minutes on an emulated CPU under load. */
#define PROBE_TIMEOUT_MS 60000

static bool has_extension(VkPhysicalDevice device, const char *name)
{
    g_autofree VkExtensionProperties *list = NULL;
    uint32_t count = 0;

    if (vkEnumerateDeviceExtensionProperties(device, NULL, &count, NULL) != VK_SUCCESS)
        return false;
    list = g_new0(VkExtensionProperties, count);
    if (vkEnumerateDeviceExtensionProperties(device, NULL, &count, list) < 0)
        return false;

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].extensionName, name) == 0)
            return true;
    }
    return false;
}

/*
 * The query of a render worker before it allocates memory that the guest can map
 * (vkr_physical_device.c). The extension alone is not enough: a driver may have it for imports or
 * images only. Without a positive answer a worker uses GBM, or the guest maps nothing.
 */
static bool can_export(VkPhysicalDevice device, const char *extension,
                       VkExternalMemoryHandleTypeFlagBits type)
{
    const VkPhysicalDeviceExternalBufferInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT,
        .handleType = type,
    };
    VkExternalBufferProperties buffer = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES,
    };
    const VkExternalMemoryProperties *memory = &buffer.externalMemoryProperties;

    if (!has_extension(device, extension))
        return false;
    vkGetPhysicalDeviceExternalBufferProperties(device, &info, &buffer);
    return (memory->externalMemoryFeatures & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT) &&
           (memory->exportFromImportedHandleTypes & type);
}

static void describe_device(VkPhysicalDevice device, struct icd_report *report)
{
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT,
    };
    VkPhysicalDeviceDrmPropertiesEXT drm = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT,
    };
    VkPhysicalDeviceProperties2 props = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
    };

    report->has_pci = has_extension(device, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
    if (report->has_pci) {
        pci.pNext = props.pNext;
        props.pNext = &pci;
    }
    report->has_drm = has_extension(device, VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME);
    if (report->has_drm) {
        drm.pNext = props.pNext;
        props.pNext = &drm;
    }
    vkGetPhysicalDeviceProperties2(device, &props);

    report->has_drm = report->has_drm && drm.hasRender;
    report->render_major = drm.renderMajor;
    report->render_minor = drm.renderMinor;
    report->domain = pci.pciDomain;
    report->bus = pci.pciBus;
    report->device = pci.pciDevice;
    report->function = pci.pciFunction;
    report->cpu = props.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    report->dma_buf = can_export(device, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME,
                                 VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT);
    report->opaque_fd = can_export(device, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                                   VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT);
    report->api_version = props.properties.apiVersion;
    g_strlcpy(report->name, props.properties.deviceName, sizeof(report->name));
}

static void describe_queues(VkPhysicalDevice device, struct icd_report *report)
{
    g_autofree VkQueueFamilyProperties *families = NULL;
    uint32_t count = 0;

    vkGetPhysicalDeviceQueueFamilyProperties(device, &count, NULL);
    families = g_new0(VkQueueFamilyProperties, count);
    vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)
            report->compute_queues += families[i].queueCount;
        if (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)
            report->graphics_queues += families[i].queueCount;
    }
}

static void describe_features(VkPhysicalDevice device, struct icd_report *report)
{
    VkPhysicalDeviceFeatures features;

    vkGetPhysicalDeviceFeatures(device, &features);
    report->fp64 = features.shaderFloat64;
    report->int64 = features.shaderInt64;
    report->fp16 = has_extension(device, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
    report->timeline = has_extension(device, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
}

static bool ask_driver(struct icd_report *report)
{
    VkApplicationInfo app = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .apiVersion = VK_API_VERSION_1_1,
    };
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &app,
    };
    g_autofree VkPhysicalDevice *devices = NULL;
    VkInstance instance;

    if (vkCreateInstance(&info, NULL, &instance) != VK_SUCCESS)
        return false;
    if (vkEnumeratePhysicalDevices(instance, &report->devices, NULL) != VK_SUCCESS ||
        report->devices == 0)
        return false;
    devices = g_new0(VkPhysicalDevice, report->devices);
    if (vkEnumeratePhysicalDevices(instance, &report->devices, devices) != VK_SUCCESS)
        return false;

    describe_device(devices[0], report);
    describe_queues(devices[0], report);
    describe_features(devices[0], report);
    return true;
}

G_NORETURN static void child_main(const char *manifest, int fd)
{
    struct icd_report report;

    memset(&report, 0, sizeof(report));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    g_setenv("VK_DRIVER_FILES", manifest, TRUE);

    /* _exit: a forked child must not run a driver's destructors. */
    if (!ask_driver(&report) || write(fd, &report, sizeof(report)) != (ssize_t)sizeof(report))
        _exit(1);
    _exit(0);
}

static bool read_report(int fd, struct icd_report *report)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int ret;

    do {
        ret = poll(&poll_fd, 1, PROBE_TIMEOUT_MS);
    } while (ret < 0 && errno == EINTR);

    /* Shorter than PIPE_BUF, so it arrives in one piece. */
    return ret == 1 && read(fd, report, sizeof(*report)) == (ssize_t)sizeof(*report);
}

bool icd_probe(const char *manifest, struct icd_report *report)
{
    int fds[2];
    bool ok;
    pid_t pid;

    if (pipe(fds) < 0)
        return false;

    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        child_main(manifest, fds[1]);
    }
    close(fds[1]);
    ok = pid > 0 && read_report(fds[0], report);
    close(fds[0]);

    if (pid > 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    report->name[sizeof(report->name) - 1] = '\0';
    return ok;
}
