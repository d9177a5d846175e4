/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/vulkan_watch.h"

#include "lib/host_root.h"
#include "lib/nvidia_readings.h"

#define VULKAN_DIR "/run/vgpu/vulkan"
#define GROUP      "vulkan"

struct VulkanWatch {
    Host *host;
    GDBusConnection *bus;
    GFileMonitor *monitor;
    GHashTable *asked; /* GPU's address to its state when its driver was last queried */
};

static void show_view(VgpuGpu *interface, GKeyFile *keyfile)
{
    g_autofree char *device = g_key_file_get_string(keyfile, GROUP, "device", NULL);
    g_autofree char *driver = g_key_file_get_string(keyfile, GROUP, "driver", NULL);
    g_autofree char *missing = g_key_file_get_string(keyfile, GROUP, "missing", NULL);
    g_autofree char *api = g_key_file_get_string(keyfile, GROUP, "api", NULL);
    g_auto(GStrv) features = g_key_file_get_string_list(keyfile, GROUP, "features", NULL, NULL);
    static const char *const none[] = {NULL};

    vgpu_gpu_set_vulkan_device(interface, device ? device : "");
    vgpu_gpu_set_vulkan_driver(interface, driver ? driver : "");
    vgpu_gpu_set_vulkan_missing(interface, missing ? missing : "");
    vgpu_gpu_set_vulkan_api(interface, api ? api : "");
    vgpu_gpu_set_vulkan_features(interface, features ? (const char *const *)features : none);
    vgpu_gpu_set_vulkan_exports_memory(
        interface, g_key_file_get_boolean(keyfile, GROUP, "exports-memory", NULL));
    vgpu_gpu_set_vulkan_compute_queues(
        interface, (guint)g_key_file_get_integer(keyfile, GROUP, "compute-queues", NULL));
    vgpu_gpu_set_vulkan_graphics_queues(
        interface, (guint)g_key_file_get_integer(keyfile, GROUP, "graphics-queues", NULL));
}

/* An incomplete or missing file shows nothing. */
static void read_description(const VulkanWatch *watch, const char *address)
{
    VgpuGpu *interface = host_gpu_interface(watch->host, address);
    g_autofree char *path = g_build_filename(VULKAN_DIR, address, NULL);
    g_autoptr(GKeyFile) keyfile =
        root_read_keys(host_root(watch->host), path, G_KEY_FILE_NONE, NULL);
    g_autoptr(GKeyFile) none = g_key_file_new();

    if (interface)
        show_view(interface, keyfile ? keyfile : none);
}

static void file_event(GFileMonitor *monitor, GFile *file, GFile *other, GFileMonitorEvent event,
                       void *data)
{
    g_autofree char *name = g_file_get_basename(file);

    (void)monitor;
    (void)other;
    if (event == G_FILE_MONITOR_EVENT_CHANGES_DONE_HINT)
        read_description(data, name);
}

static void describe_started(GObject *bus, GAsyncResult *answer, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), answer, &error);

    (void)data;
    if (!result)
        g_message("cannot query Vulkan's view of a GPU: %s", error->message);
}

static void ask_for_view(const VulkanWatch *watch, const char *address)
{
    g_autofree char *unit = g_strdup_printf("vgpu-describe@%s.service", address);

    g_dbus_connection_call(watch->bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                           "org.freedesktop.systemd1.Manager", "RestartUnit",
                           g_variant_new("(ss)", unit, "replace"), NULL, G_DBUS_CALL_FLAGS_NONE, -1,
                           NULL, describe_started, NULL);
}

/* A GPU of NVIDIA's driver can be one for CUDA alone, of which the engine says so. */
static gboolean may_describe(const Gpu *gpu)
{
    return gpu->drm_nodes[0] || gpu_name_is_soft(gpu->pci->address) ||
           g_strcmp0(gpu->pci->driver, NVIDIA_DRIVER) == 0;
}

/* The inputs of Vulkan's result. The host must not touch a GPU that a VM may own as a whole. */
static char *signature_of(const Gpu *gpu)
{
    g_autofree char *nodes = g_strjoinv(" ", gpu->drm_nodes);

    if (gpu->mode == GPU_MODE_PASSTHROUGH || !may_describe(gpu))
        return g_strdup("");
    return g_strdup_printf("%s %s", gpu->pci->driver ? gpu->pci->driver : "", nodes);
}

static void look_at(VulkanWatch *watch, const Gpu *gpu)
{
    const char *address = gpu->pci->address;
    g_autofree char *now = signature_of(gpu);
    const char *before = g_hash_table_lookup(watch->asked, address);
    g_autofree char *path = g_build_filename(VULKAN_DIR, address, NULL);

    if (g_strcmp0(before, now) == 0)
        return;
    /* If only vgpud was restarted, the answer exists already. */
    if (before || !*now)
        root_remove(host_root(watch->host), path);
    read_description(watch, address);
    if (*now && (before || !root_has(host_root(watch->host), path)))
        ask_for_view(watch, address);
    g_hash_table_insert(watch->asked, g_strdup(address), g_steal_pointer(&now));
}

static void gpus_changed(void *data)
{
    VulkanWatch *watch = data;
    const GPtrArray *gpus = host_gpus(watch->host);

    for (guint i = 0; watch->bus && i < gpus->len; i++)
        look_at(watch, g_ptr_array_index(gpus, i));
}

VulkanWatch *vulkan_watch_new(Host *host)
{
    VulkanWatch *watch = g_new0(VulkanWatch, 1);

    watch->host = host;
    watch->asked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    host_watch(host, NULL, gpus_changed, watch);
    return watch;
}

void vulkan_watch_free(VulkanWatch *watch)
{
    g_clear_object(&watch->monitor);
    g_clear_object(&watch->bus);
    g_hash_table_unref(watch->asked);
    g_free(watch);
}

void vulkan_watch_start(VulkanWatch *watch, GDBusConnection *bus)
{
    HostRoot *root = host_root(watch->host);
    g_autofree char *path = root_path(root, VULKAN_DIR, NULL);
    g_autoptr(GFile) dir = g_file_new_for_path(path);
    g_autoptr(GError) error = NULL;

    watch->bus = g_object_ref(bus);
    if (!root_mkdir(root, VULKAN_DIR, 0755, &error))
        g_message("%s", error->message);
    watch->monitor = g_file_monitor_directory(dir, G_FILE_MONITOR_NONE, NULL, NULL);
    if (watch->monitor)
        g_signal_connect(watch->monitor, "changed", G_CALLBACK(file_event), watch);
    gpus_changed(watch);
}
