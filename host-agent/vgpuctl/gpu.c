/* SPDX-License-Identifier: MIT */
/*
 * vgpuctl gpu list, show; topo; type list, show: physical GPUs, how near they are, and what they
 * offer.
 */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/output.h"

/* vgpuctl gpu list, show: physical GPUs. */

static char *numa_text(GVariant *gpu, const char *key)
{
    gint node = -1;

    g_variant_lookup(gpu, key, "i", &node);
    return node >= 0 ? g_strdup_printf("%d", node) : NULL;
}

/* "16.0 GT/s x16". @key: of the speed, and with Width in place of Speed of the lanes. */
static char *link_text(GVariant *gpu, const char *key)
{
    g_auto(GStrv) parts = g_strsplit(key, "Speed", -1);
    g_autofree char *width_key = g_strjoinv("Width", parts);
    guint speed = 0;
    guint width = 0;

    g_variant_lookup(gpu, key, "u", &speed);
    g_variant_lookup(gpu, width_key, "u", &width);
    return speed ? g_strdup_printf("%u.%u GT/s x%u", speed / 10, speed % 10, width) : NULL;
}

/* "15.98 GiB (sysfs)" */
static char *vram_text(GVariant *gpu, const char *key)
{
    g_autofree char *bytes = dict_bytes(gpu, key);
    g_autofree char *source = dict_text(gpu, "VramSource");

    return bytes ? g_strdup_printf("%s (%s)", bytes, source) : NULL;
}

/* "8.0 GiB of 16.0 GiB"; of a GPU that is not shared nothing is promised. */
static char *promised_text(GVariant *gpu, const char *key)
{
    g_autofree char *promised = dict_bytes(gpu, key);
    g_autofree char *capacity = dict_bytes(gpu, "Capacity");

    return capacity ? g_strdup_printf("%s of %s", promised ? promised : "0", capacity) : NULL;
}

static char *sriov_text(GVariant *gpu, const char *key)
{
    guint active = 0;
    guint total = 0;

    g_variant_lookup(gpu, key, "u", &active);
    g_variant_lookup(gpu, "SriovTotal", "u", &total);
    return total ? g_strdup_printf("%u of %u virtual functions", active, total) : NULL;
}

static char *health_text(GVariant *gpu, const char *key)
{
    gboolean healthy = TRUE;
    g_autofree char *reasons = dict_list(gpu, "HealthReasons", "; ");

    g_variant_lookup(gpu, key, "b", &healthy);
    return healthy ? g_strdup("yes") : g_strconcat("no: ", reasons, NULL);
}

/* "link (notice): its PCI Express link has 8 lanes and could have 16: …" */
static char *findings_text(GVariant *gpu, const char *key)
{
    g_autoptr(GVariant) findings = g_variant_lookup_value(gpu, key, G_VARIANT_TYPE("aa{sv}"));
    GString *text = g_string_new(NULL);
    GVariantIter iter;
    GVariant *finding;

    if (findings) {
        g_variant_iter_init(&iter, findings);
        while (g_variant_iter_loop(&iter, "@a{sv}", &finding)) {
            const char *kind = "", *grade = "", *reason = "";

            g_variant_lookup(finding, "Kind", "&s", &kind);
            g_variant_lookup(finding, "Grade", "&s", &grade);
            g_variant_lookup(finding, "Reason", "&s", &reason);
            g_string_append_printf(text, "%s%s (%s): %s", text->len ? "; " : "", kind, grade,
                                   reason);
        }
    }
    return text->len ? g_string_free(text, FALSE) : (g_string_free(text, TRUE), NULL);
}

/* "AMD Radeon RX 6800 (1.4.305, radeon_icd.x86_64.json)"; "none, vGPUs have CUDA alone: …" */
static char *vulkan_text(GVariant *gpu, const char *key)
{
    const char *device = "", *api = "", *driver = "", *missing = "";
    gboolean exports = TRUE;

    g_variant_lookup(gpu, key, "&s", &device);
    g_variant_lookup(gpu, "VulkanApi", "&s", &api);
    g_variant_lookup(gpu, "VulkanDriver", "&s", &driver);
    g_variant_lookup(gpu, "VulkanExportsMemory", "b", &exports);
    g_variant_lookup(gpu, "VulkanMissing", "&s", &missing);
    if (*missing)
        return g_strconcat("none, vGPUs have CUDA alone: ", missing, NULL);
    if (!*device)
        return NULL;
    return g_strdup_printf("%s (%s, %s%s)", device, api, driver,
                           exports ? "" : ", cannot export memory");
}

/* "shared, switching to passthrough, draining"; "host, wanted: passthrough" */
static char *mode_with(GVariant *gpu, const char *key, const char *without_vms)
{
    const char *mode = "", *wanted = "", *switching = "";
    gboolean draining = FALSE;
    gboolean containers_only = FALSE;
    g_autoptr(GString) text = NULL;

    g_variant_lookup(gpu, key, "&s", &mode);
    g_variant_lookup(gpu, "WantedMode", "&s", &wanted);
    g_variant_lookup(gpu, "Switching", "&s", &switching);
    g_variant_lookup(gpu, "Draining", "b", &draining);
    g_variant_lookup(gpu, "ContainersOnly", "b", &containers_only);
    text = g_string_new(mode);
    if (containers_only)
        g_string_append(text, without_vms);
    if (*switching)
        g_string_append_printf(text, ", switching to %s", switching);
    else if (*wanted && !g_str_equal(mode, wanted))
        g_string_append_printf(text, ", wanted: %s", wanted);
    if (draining)
        g_string_append(text, ", draining");
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Of a table. */
static char *mode_text(GVariant *gpu, const char *key)
{
    return mode_with(gpu, key, ", not with VMs");
}

static char *mode_line(GVariant *gpu, const char *key)
{
    return mode_with(gpu, key, " with containers and jobs only (mdev_vgpu is not loaded)");
}

static char *id_text(GVariant *gpu, const char *key)
{
    guint16 vendor = 0;
    guint16 device = 0;

    g_variant_lookup(gpu, key, "q", &vendor);
    g_variant_lookup(gpu, "DeviceId", "q", &device);
    return g_strdup_printf("%04x:%04x", vendor, device);
}

static char *words_text(GVariant *gpu, const char *key)
{
    return dict_list(gpu, key, " ");
}

static char *speed_text(GVariant *gpu, double unit, const char *key, const char *format)
{
    guint64 speed = 0;

    g_variant_lookup(gpu, key, "t", &speed);
    return speed ? g_strdup_printf(format, (double)speed / unit) : g_strdup("");
}

static char *flops_text(GVariant *gpu, const char *key)
{
    return speed_text(gpu, 1e12, key, "%.1f TFLOPS (32 bits)");
}

static char *bandwidth_text(GVariant *gpu, const char *key)
{
    return speed_text(gpu, 1e9, key, "%.0f GB/s");
}

static const Column gpu_columns[] = {
    {"GPU", "Address", dict_text, 0},
    {"MODE", "Mode", mode_text, COLUMN_STATE},
    {"DRIVER", "Driver", dict_text, 0},
    {"VRAM", "Vram", dict_bytes, 0},
    {"NUMA", "NumaNode", numa_text, 0},
    {"GROUP", "IommuGroup", dict_text, 0},
    {"PROMISED", "PromisedVram", promised_text, COLUMN_WIDE},
    {"VGPUS", "Vgpus", dict_number, COLUMN_WIDE},
    {"HEALTHY", "Healthy", health_text, COLUMN_WIDE | COLUMN_STATE},
    {"NAME", "Name", dict_text, COLUMN_LONG},
};

static const Column gpu_lines[] = {
    {"GPU", "Address", dict_text, 0},
    {"Name", "Name", dict_text, 0},
    {"Model", "Model", dict_text, 0},
    {"UUID", "Uuid", dict_text, 0},
    {"PCI id", "VendorId", id_text, 0},
    {"Mode", "Mode", mode_line, COLUMN_STATE},
    {"Mode set by", "ModeSource", dict_text, 0},
    {"Pool", "Pool", dict_text, 0},
    {"Pool set by", "PoolSource", dict_text, 0},
    {"Healthy", "Healthy", health_text, COLUMN_STATE},
    {"Findings", "HealthFindings", findings_text, 0},
    {"Driver", "Driver", dict_text, 0},
    {"VRAM", "Vram", vram_text, 0},
    {"VRAM promised", "PromisedVram", promised_text, 0},
    {"Computes", "Flops", flops_text, 0},
    {"Memory's speed", "MemoryBandwidth", bandwidth_text, 0},
    {"Vulkan", "VulkanDevice", vulkan_text, 0},
    {"Vulkan features", "VulkanFeatures", words_text, 0},
    {"DRM nodes", "DrmNodes", words_text, 0},
    {"vGPU types", "MdevTypes", words_text, 0},
    {"NUMA node", "NumaNode", numa_text, 0},
    {"IOMMU group", "IommuGroup", dict_text, 0},
    {"IOMMU group members", "IommuGroupMembers", words_text, 0},
    {"Members in use", "IommuGroupInUse", words_text, 0},
    {"Link", "LinkSpeed", link_text, 0},
    {"Maximum link", "LinkSpeedMax", link_text, 0},
    {"SR-IOV", "SriovActive", sriov_text, 0},
    {"Partitions", "Partitions", words_text, 0},
    {"Virtual function of", "PhysicalFunction", dict_text, 0},
};

static const Listing gpu_listing = {
    .columns = gpu_columns,
    .columns_count = G_N_ELEMENTS(gpu_columns),
    .lines = gpu_lines,
    .lines_count = G_N_ELEMENTS(gpu_lines),
    .name = "Address",
    .none = "This host has no GPU.",
};

/* All of its properties, and its states in one word each for the filter. */
static GVariant *object_of(VgpuGpu *gpu)
{
    g_auto(GStrv) names = g_dbus_proxy_get_cached_property_names(G_DBUS_PROXY(gpu));
    GVariantBuilder dict;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    for (char **name = names; name && *name; name++) {
        g_autoptr(GVariant) value = g_dbus_proxy_get_cached_property(G_DBUS_PROXY(gpu), *name);

        g_variant_builder_add(&dict, "{sv}", *name, value);
    }
    return g_variant_ref_sink(g_variant_builder_end(&dict));
}

static gboolean gpu_is_in_state(void *gpu, const char *state)
{
    if (g_str_equal(state, "draining"))
        return vgpu_gpu_get_draining(gpu);
    if (g_str_equal(state, "healthy"))
        return vgpu_gpu_get_healthy(gpu);
    if (g_str_equal(state, "unhealthy"))
        return !vgpu_gpu_get_healthy(gpu);
    return g_str_equal(state, vgpu_gpu_get_mode(gpu));
}

gboolean gpu_list_command(Client *client, const Options *options, char **args, GError **error)
{
    static const char *const words[] = {"host",     "shared",  "passthrough", "partitioned",
                                        "draining", "healthy", "unhealthy",   NULL};
    static const Filter filter = {.gpu = "Address", .words = words};
    g_autoptr(GPtrArray) gpus = client_gpus(client, error);
    GVariantBuilder builder;

    (void)args;
    if (!gpus)
        return FALSE;
    g_variant_builder_init(&builder, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < gpus->len; i++) {
        g_autoptr(GVariant) object = object_of(g_ptr_array_index(gpus, i));

        if (filter_has_state(g_ptr_array_index(gpus, i), gpu_is_in_state))
            g_variant_builder_add_value(&builder, object);
    }
    return objects_list(options, &gpu_listing, g_variant_builder_end(&builder), &filter, error);
}

gboolean gpu_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func((GDestroyNotify)g_variant_unref);
    g_autoptr(GError) missing = NULL;

    for (char **name = args; *name; name++) {
        g_autoptr(GError) cause = NULL;
        g_autoptr(VgpuGpu) gpu = client_gpu(client, *name, &cause);

        if (gpu)
            g_ptr_array_add(objects, object_of(gpu));
        else if (missing)
            each_print_error(cause);
        else
            missing = g_steal_pointer(&cause);
    }
    if (objects->len)
        listing_show(options, &gpu_listing, objects, g_strv_length(args) > 1);
    if (!missing)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&missing));
    return FALSE;
}

/* vgpuctl topo: which GPUs are near each other. */

static const char legend[] = "\n"
                             "  X     the GPU itself\n"
                             "  PIX   at most one PCIe switch between them\n"
                             "  PXB   several PCIe switches\n"
                             "  PHB   a PCIe host bridge\n"
                             "  NODE  host bridges of one NUMA node\n"
                             "  SYS   NUMA nodes\n";

static void print_table(const Options *options, char **gpus, GVariant *distances)
{
    guint count = g_strv_length(gpus);
    g_autoptr(GPtrArray) heads = g_ptr_array_new();
    g_autoptr(GPtrArray) cells = g_ptr_array_new();

    g_ptr_array_add(heads, (char *)"GPU");
    for (guint i = 0; i < count; i++) {
        g_autoptr(GVariant) row = g_variant_get_child_value(distances, i);

        g_ptr_array_add(heads, gpus[i]);
        g_ptr_array_add(cells, gpus[i]);
        for (guint k = 0; k < count; k++) {
            const char *distance;

            g_variant_get_child(row, k, "&s", &distance);
            g_ptr_array_add(cells, (char *)distance);
        }
    }
    listing_print_cells(options, (const char *const *)heads->pdata, count + 1, cells);
    if (!options->no_headers)
        fputs(legend, options->out);
}

static void print_document(const Options *options, GVariant *gpus, GVariant *distances)
{
    JsonObject *object = json_object_new();

    json_object_set_member(object, "gpus", json_gvariant_serialize(gpus));
    json_object_set_member(object, "distances", json_gvariant_serialize(distances));
    output_node(options, json_node_init_object(json_node_alloc(), object));
    json_object_unref(object);
}

gboolean topo_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) answer = client_call(client, "GetTopology", NULL, NULL, error);
    g_autoptr(GVariant) list = NULL;
    g_autoptr(GVariant) distances = NULL;
    g_autofree const char **gpus = NULL;

    (void)args;
    if (!answer)
        return FALSE;
    list = g_variant_get_child_value(answer, 0);
    distances = g_variant_get_child_value(answer, 1);
    gpus = g_variant_get_strv(list, NULL);
    if (output_is_document(options))
        print_document(options, list, distances);
    else
        print_table(options, (char **)gpus, distances);
    return TRUE;
}

/* vgpuctl type: what vGPUs come in. */

static const Column type_columns[] = {
    {"GPU", "Gpu", dict_text, 0},
    {"TYPE", "Id", dict_text, 0},
    {"COUNT", "Instances", dict_number, 0},
    {"MORE", "Available", dict_number, 0},
    {"VRAM", "Vram", dict_bytes, COLUMN_WIDE},
    {"CLASS", "Class", dict_text, COLUMN_WIDE},
    {"COMPUTE", "Compute", dict_limit, COLUMN_WIDE},
    {"CUDA", "Cuda", dict_flag, COLUMN_WIDE},
    {"DESCRIPTION", "Description", dict_text, COLUMN_LONG},
};

static const Column type_lines[] = {
    {"Type", "Id", dict_text, 0},
    {"GPU", "Gpu", dict_text, 0},
    {"Description", "Description", dict_text, 0},
    {"vGPUs of it", "Instances", dict_number, 0},
    {"Room for more", "Available", dict_number, 0},
    {"VRAM", "Vram", dict_bytes, 0},
    {"Oversubscription", "Oversubscribe", dict_bytes, 0},
    {"Window", "Window", dict_bytes, 0},
    {"Class", "Class", dict_text, 0},
    {"Compute", "Compute", dict_limit, 0},
    {"Weight", "Weight", dict_number, 0},
    {"Cap", "Cap", dict_number, 0},
    {"Priority", "Priority", dict_number, 0},
    {"Display", "Display", dict_number, 0},
    {"CUDA", "Cuda", dict_flag, 0},
};

static const Listing type_listing = {
    .columns = type_columns,
    .columns_count = G_N_ELEMENTS(type_columns),
    .lines = type_lines,
    .lines_count = G_N_ELEMENTS(type_lines),
    .name = "Id",
    .none = "No GPU of this host is shared with VMs. /etc/vgpu/gpus.conf lists the GPUs to share, "
            "and the "
            "kernel module mdev_vgpu must be loaded.",
};

gboolean type_list_command(Client *client, const Options *options, char **args, GError **error)
{
    static const Filter filter = {.gpu = "Gpu", .type = "Id"};

    (void)args;
    return objects_list(options, &type_listing,
                        client_get(client, "ListTypes", NULL, "listing types", error), &filter,
                        error);
}

gboolean type_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) types = client_get(client, "ListTypes", NULL, "listing types", error);

    return types && objects_show(options, &type_listing, types, args, object_is_type, "type",
                                 "type list", error);
}
