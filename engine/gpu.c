// SPDX-License-Identifier: MIT
#include "gpu.h"

#include "exit_code.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NVIDIA's for CUDA. Vulkan uses it if it exists. */
#define OPTIONAL_NODE "/dev/nvidia-uvm"

#define LOOK_INTERVAL (100 * G_TIME_SPAN_MILLISECOND)

G_DEFINE_QUARK(vgpu_engine_error, engine_error)

void gpu_free(struct gpu *gpu)
{
    if (!gpu)
        return;
    g_free(gpu->name);
    g_free(gpu->render_node);
    g_strfreev(gpu->nodes);
    g_free(gpu);
}

static bool parse_address(const char *name, struct gpu *gpu)
{
    int used = 0;

    if (sscanf(name, "%8x:%2x:%2x.%1x%n", &gpu->domain, &gpu->bus, &gpu->device, &gpu->function,
               &used) != 4)
        return false;
    return name[used] == '\0' && gpu->device < 32 && gpu->function < 8;
}

/*
 * Whether a DRM device belongs to the PCI device itself or to a device on it: virtio-gpu's is below
 * a virtio device.
 */
static bool belongs_to(const char *drm_path, const char *pci_path)
{
    char real[PATH_MAX];
    g_autofree char *device = g_build_filename(drm_path, "device", NULL);
    size_t len = strlen(pci_path);

    if (!realpath(device, real))
        return false;
    return strncmp(real, pci_path, len) == 0 && (real[len] == '\0' || real[len] == '/');
}

static bool find_render_node(struct gpu *gpu, const char *sysroot, const char *pci_path)
{
    g_autofree char *class_path = g_strconcat(sysroot, "/sys/class/drm", NULL);
    g_autoptr(GDir) dir = g_dir_open(class_path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *drm_path = g_build_filename(class_path, name, NULL);
        g_autofree char *dev_path = g_build_filename(drm_path, "dev", NULL);
        g_autofree char *dev = NULL;

        if (!g_str_has_prefix(name, "renderD") || !belongs_to(drm_path, pci_path))
            continue;
        if (!g_file_get_contents(dev_path, &dev, NULL, NULL) ||
            sscanf(dev, "%u:%u", &gpu->render_major, &gpu->render_minor) != 2)
            return false;
        gpu->render_node = g_build_filename("/dev/dri", name, NULL);
        return true;
    }
    return false;
}

static const char *icd_hint_of(const char *pci_path)
{
    static const char *const hints[][2] = {
        {"amdgpu", "radeon"}, {"i915", "intel"},      {"xe", "intel"},
        {"nvidia", "nvidia"}, {"nouveau", "nouveau"}, {"virtio-pci", "virtio"},
    };
    g_autofree char *link = g_build_filename(pci_path, "driver", NULL);
    g_autofree char *target = g_file_read_link(link, NULL);
    g_autofree char *driver = target ? g_path_get_basename(target) : NULL;

    for (size_t i = 0; driver && i < G_N_ELEMENTS(hints); i++) {
        if (strcmp(driver, hints[i][0]) == 0)
            return hints[i][1];
    }
    return NULL;
}

/* NVIDIA's driver uses nodes of its own; the render node alone is not enough. */
static void add_nvidia_nodes(const struct gpu *gpu, const char *sysroot, GStrvBuilder *nodes)
{
    g_autofree char *path =
        g_strdup_printf("%s/proc/driver/nvidia/gpus/%s/information", sysroot, gpu->name);
    g_autofree char *text = NULL;
    const char *minor;
    unsigned int number;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    minor = strstr(text, "Device Minor:");
    if (!minor || sscanf(minor, "Device Minor: %u", &number) != 1)
        return;

    g_strv_builder_take(nodes, g_strdup_printf("/dev/nvidia%u", number));
    /* Not -uvm-tools, which is for profilers, nor -modeset, which is for displays. */
    g_strv_builder_add_many(nodes, "/dev/nvidiactl", OPTIONAL_NODE, NULL);
}

static bool lookup_pci(struct gpu *gpu, const char *sysroot, GError **error)
{
    g_autofree char *path = g_strconcat(sysroot, "/sys/bus/pci/devices/", gpu->name, NULL);
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    char real[PATH_MAX];

    if (!parse_address(gpu->name, gpu)) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE,
                    "GPU \"%s\" is neither a PCI address nor soft:<name>", gpu->name);
        return false;
    }
    if (!realpath(path, real)) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_GPU, "GPU %s: no such PCI device (%s)",
                    gpu->name, path);
        return false;
    }
    gpu->icd_hint = icd_hint_of(real);
    if (!find_render_node(gpu, sysroot, real)) {
        bool is_nvidia = g_strcmp0(gpu->icd_hint, "nvidia") == 0;

        /* Without it NVIDIA's driver computes, but exports no memory. */
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_GPU,
                    is_nvidia ? "GPU %s: it has no render node; modprobe nvidia-drm modeset=1"
                              : "GPU %s: it has no render node; is its driver bound?",
                    gpu->name);
        return false;
    }
    g_strv_builder_add(nodes, gpu->render_node);
    add_nvidia_nodes(gpu, sysroot, nodes);
    gpu->nodes = g_strv_builder_end(nodes);
    return true;
}

struct gpu *gpu_lookup(const char *name, const char *sysroot, GError **error)
{
    /* The CPU's Vulkan driver makes dma-bufs of its memory with udmabuf. */
    static const char *const soft_nodes[] = {"/dev/udmabuf", NULL};
    struct gpu *gpu = g_new0(struct gpu, 1);

    gpu->name = g_strdup(name);
    if (g_str_has_prefix(name, "soft:")) {
        gpu->soft = true;
        gpu->icd_hint = "lvp";
        gpu->nodes = g_strdupv((char **)soft_nodes);
        return gpu;
    }
    if (!lookup_pci(gpu, sysroot, error)) {
        gpu_free(gpu);
        return NULL;
    }
    return gpu;
}

struct gpu *gpu_lookup_cuda(const char *name, const char *sysroot, GError **error)
{
    struct gpu *gpu = g_new0(struct gpu, 1);
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();

    gpu->name = g_strdup(name);
    if (parse_address(name, gpu))
        add_nvidia_nodes(gpu, sysroot, nodes);
    gpu->nodes = g_strv_builder_end(nodes);
    if (gpu->nodes[0])
        return gpu;
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_GPU, "GPU %s: NVIDIA's driver does not have it",
                name);
    gpu_free(gpu);
    return NULL;
}

/* The optional one is the last. */
static bool has_nodes(const struct gpu *gpu, const char *sysroot, GError **error)
{
    if (gpu->soft) /* without /dev/udmabuf it shares no memory, but computes */
        return true;
    for (char **node = gpu->nodes; *node; node++) {
        g_autofree char *path = g_strconcat(sysroot, *node, NULL);

        if (g_file_test(path, G_FILE_TEST_EXISTS))
            continue;
        if (strcmp(*node, OPTIONAL_NODE) == 0) {
            g_message("GPU %s: " OPTIONAL_NODE " is not there; if it comes later, it is not used",
                      gpu->name);
            continue;
        }
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_NODE,
                    "GPU %s: %s is not there; its driver or, for NVIDIA, nvidia-persistenced or "
                    "nvidia-modprobe makes it",
                    gpu->name, *node);
        return false;
    }
    return true;
}

struct gpu *gpu_wait_for(gpu_finder lookup, const char *name, const char *sysroot, gint64 until,
                         GError **error)
{
    for (bool said = false;; said = true) {
        g_autoptr(GError) reason = NULL;
        struct gpu *gpu = lookup(name, sysroot, &reason);

        if (gpu && has_nodes(gpu, sysroot, &reason))
            return gpu;
        gpu_free(gpu);
        if (reason->code == EXIT_CODE_USAGE || g_get_monotonic_time() >= until) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return NULL;
        }
        if (!said)
            g_message("waiting: %s", reason->message);
        g_usleep(LOOK_INTERVAL);
    }
}
