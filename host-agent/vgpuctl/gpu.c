/* SPDX-License-Identifier: MIT */
/* vgpuctl gpu: physical GPUs. */
#include <stdio.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/table.h"
#include "host-agent/vgpuctl/text.h"

/* "16.0 GT/s x16" */
static char *link_text(guint speed, guint width)
{
    return speed ? g_strdup_printf("%u.%u GT/s x%u", speed / 10, speed % 10, width) : NULL;
}

static void print_json(const GPtrArray *gpus)
{
    JsonArray *array = json_array_new();

    for (guint i = 0; i < gpus->len; i++)
        json_array_add_element(array, json_of_interface(g_ptr_array_index(gpus, i)));
    json_print(json_node_init_array(json_node_alloc(), array));
    json_array_unref(array);
}

static void add_row(Table *table, VgpuGpu *gpu)
{
    gint node = vgpu_gpu_get_numa_node(gpu);

    table_add(table, g_strdup(vgpu_gpu_get_address(gpu)));
    table_add(table, g_strdup(vgpu_gpu_get_mode(gpu)));
    table_add(table, g_strdup(vgpu_gpu_get_driver(gpu)));
    table_add(table, text_of_bytes(vgpu_gpu_get_vram(gpu)));
    table_add(table, node >= 0 ? g_strdup_printf("%d", node) : NULL);
    table_add(table, g_strdup(vgpu_gpu_get_iommu_group(gpu)));
    table_add(table, g_strdup(vgpu_gpu_get_name(gpu)));
}

gboolean gpu_list_command(Client *client, const Options *options, char **args, GError **error)
{
    static const char *const heads[] = {"GPU", "MODE", "DRIVER", "VRAM", "NUMA", "GROUP", "NAME"};
    g_autoptr(GPtrArray) gpus = client_gpus(client, error);
    g_autoptr(Table) table = table_new_with_heads(heads, G_N_ELEMENTS(heads));

    (void)args;
    if (!gpus)
        return FALSE;
    if (options->json) {
        print_json(gpus);
        return TRUE;
    }
    if (!gpus->len) {
        puts("This host has no GPU.");
        return TRUE;
    }
    for (guint i = 0; i < gpus->len; i++)
        add_row(table, g_ptr_array_index(gpus, i));
    table_print(table);
    return TRUE;
}

static void add_list(Table *table, const char *name, const char *const *list)
{
    table_add_pair(table, name, g_strjoinv(" ", (GStrv)list));
}

static char *vram_text(VgpuGpu *gpu)
{
    g_autofree char *bytes = text_of_bytes(vgpu_gpu_get_vram(gpu));

    return bytes ? g_strdup_printf("%s (%s)", bytes, vgpu_gpu_get_vram_source(gpu)) : NULL;
}

static char *sriov_text(VgpuGpu *gpu)
{
    guint total = vgpu_gpu_get_sriov_total(gpu);

    return total ? g_strdup_printf("%u of %u virtual functions", vgpu_gpu_get_sriov_active(gpu),
                                   total)
                 : NULL;
}

static char *health_text(VgpuGpu *gpu)
{
    g_autofree char *reasons = g_strjoinv("; ", (GStrv)vgpu_gpu_get_health_reasons(gpu));

    return vgpu_gpu_get_healthy(gpu) ? g_strdup("yes") : g_strconcat("no: ", reasons, NULL);
}

/* "AMD Radeon RX 6800 (1.4.305, radeon_icd.x86_64.json)" */
static char *vulkan_text(VgpuGpu *gpu)
{
    const char *device = vgpu_gpu_get_vulkan_device(gpu);

    if (!*device)
        return NULL;
    return g_strdup_printf("%s (%s, %s%s)", device, vgpu_gpu_get_vulkan_api(gpu),
                           vgpu_gpu_get_vulkan_driver(gpu),
                           vgpu_gpu_get_vulkan_exports_memory(gpu) ? "" : ", can't export memory");
}

/* "shared, being switched to passthrough, draining"; "host, wanted: passthrough" */
static char *mode_text(VgpuGpu *gpu)
{
    const char *mode = vgpu_gpu_get_mode(gpu);
    const char *wanted = vgpu_gpu_get_wanted_mode(gpu);
    const char *switching = vgpu_gpu_get_switching(gpu);
    GString *text = g_string_new(mode);

    if (*switching)
        g_string_append_printf(text, ", being switched to %s", switching);
    else if (*wanted && !g_str_equal(mode, wanted))
        g_string_append_printf(text, ", wanted: %s", wanted);
    if (vgpu_gpu_get_draining(gpu))
        g_string_append(text, ", draining");
    return g_string_free(text, FALSE);
}

static void add_gpu(Table *table, VgpuGpu *gpu)
{
    gint node = vgpu_gpu_get_numa_node(gpu);

    table_add_pair(table, "GPU", g_strdup(vgpu_gpu_get_address(gpu)));
    table_add_pair(table, "Name", g_strdup(vgpu_gpu_get_name(gpu)));
    table_add_pair(
        table, "PCI id",
        g_strdup_printf("%04x:%04x", vgpu_gpu_get_vendor_id(gpu), vgpu_gpu_get_device_id(gpu)));
    table_add_pair(table, "Mode", mode_text(gpu));
    table_add_pair(table, "Healthy", health_text(gpu));
    table_add_pair(table, "Driver", g_strdup(vgpu_gpu_get_driver(gpu)));
    table_add_pair(table, "VRAM", vram_text(gpu));
    table_add_pair(table, "Vulkan", vulkan_text(gpu));
    add_list(table, "Vulkan features", vgpu_gpu_get_vulkan_features(gpu));
    add_list(table, "DRM nodes", vgpu_gpu_get_drm_nodes(gpu));
    add_list(table, "vGPU types", vgpu_gpu_get_mdev_types(gpu));
    table_add_pair(table, "NUMA node", node >= 0 ? g_strdup_printf("%d", node) : NULL);
    table_add_pair(table, "IOMMU group", g_strdup(vgpu_gpu_get_iommu_group(gpu)));
    add_list(table, "In the group too", vgpu_gpu_get_iommu_group_members(gpu));
    add_list(table, "Of them in use", vgpu_gpu_get_iommu_group_in_use(gpu));
    table_add_pair(table, "Link",
                   link_text(vgpu_gpu_get_link_speed(gpu), vgpu_gpu_get_link_width(gpu)));
    table_add_pair(table, "Link at most",
             link_text(vgpu_gpu_get_link_speed_max(gpu), vgpu_gpu_get_link_width_max(gpu)));
    table_add_pair(table, "SR-IOV", sriov_text(gpu));
    add_list(table, "Partitions", vgpu_gpu_get_partitions(gpu));
    table_add_pair(table, "Virtual function of", g_strdup(vgpu_gpu_get_physical_function(gpu)));
}

gboolean gpu_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(VgpuGpu) gpu = client_gpu(client, args[0], error);
    g_autoptr(Table) table = table_new(2);

    if (!gpu)
        return FALSE;
    if (options->json) {
        json_print(json_of_interface(G_DBUS_PROXY(gpu)));
        return TRUE;
    }
    add_gpu(table, gpu);
    table_print(table);
    return TRUE;
}
