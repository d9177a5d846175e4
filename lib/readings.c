/* SPDX-License-Identifier: MIT */
#include "lib/readings.h"

#include <string.h>

#include "lib/host_root.h"
#include "lib/nvidia_readings.h"
#include "lib/systemd.h"

#define DRM_SCAN_US (30 * G_USEC_PER_SEC)

/* aer_dev_*: "NAME COUNT" lines; the last one is the sum, "TOTAL_ERR_FATAL 3". */
static gboolean read_aer(HostRoot *root, const char *dir, const char *attribute, guint64 *count)
{
    g_autofree char *text = sysfs_read(root, dir, attribute);
    const char *total = text ? strstr(text, "TOTAL_ERR_") : NULL;
    const char *blank = total ? strchr(total, ' ') : NULL;

    *count = blank ? g_ascii_strtoull(blank, NULL, 10) : 0;
    return blank != NULL;
}

/* amdgpu's ras/BLOCK_err_count: "ue: 0", "ce: 2". */
static void read_ras_block(HostRoot *root, const char *dir, const char *name, GpuReadings *readings)
{
    g_autofree char *text = sysfs_read(root, dir, name);
    const char *uncorrectable = text ? strstr(text, "ue:") : NULL;
    const char *correctable = text ? strstr(text, "ce:") : NULL;

    if (!uncorrectable || !correctable)
        return;
    readings->has_ecc = TRUE;
    readings->ecc_uncorrectable += g_ascii_strtoull(uncorrectable + 3, NULL, 10);
    readings->ecc_correctable += g_ascii_strtoull(correctable + 3, NULL, 10);
}

static void read_ras(HostRoot *root, const char *device, GpuReadings *readings)
{
    g_autofree char *dir = g_build_filename(device, "ras", NULL);
    g_auto(GStrv) names = sysfs_list(root, dir);

    for (guint i = 0; names[i]; i++)
        if (g_str_has_suffix(names[i], "_err_count"))
            read_ras_block(root, dir, names[i], readings);
}

/* The start of the range in which the sensor's chip is in danger. */
static gint64 limit_of(HostRoot *root, const char *dir, const char *sensor)
{
    static const char *const limits[] = {"_crit", "_emergency", "_max"};

    for (guint i = 0; i < G_N_ELEMENTS(limits); i++) {
        g_autofree char *name = g_strconcat(sensor, limits[i], NULL);
        gint64 limit = sysfs_number(root, dir, name, 0);

        if (limit > 0)
            return limit;
    }
    return 0;
}

/* The one of two that is nearer to its limit; without limits, the hotter. */
static gboolean is_worse(gint64 temperature, gint64 limit, const GpuReadings *than)
{
    if (!than->has_temperature || (limit && !than->temperature_limit))
        return TRUE;
    if (!limit)
        return !than->temperature_limit && temperature > than->temperature;
    return temperature - limit > than->temperature - than->temperature_limit;
}

static void read_temperature(HostRoot *root, const char *dir, const char *input,
                             GpuReadings *readings)
{
    g_autofree char *sensor = g_strndup(input, strlen(input) - strlen("_input"));
    g_autofree char *label_name = g_strconcat(sensor, "_label", NULL);
    g_autofree char *label = NULL;
    gint64 temperature = sysfs_number(root, dir, input, G_MININT64);
    gint64 limit = limit_of(root, dir, sensor);

    if (temperature == G_MININT64 || !is_worse(temperature, limit, readings))
        return;
    label = sysfs_read(root, dir, label_name);
    readings->has_temperature = TRUE;
    readings->temperature = temperature;
    readings->temperature_limit = limit;
    g_strlcpy(readings->sensor, label ? label : "", sizeof(readings->sensor));
}

static void read_sensors(HostRoot *root, const char *dir, GpuReadings *readings)
{
    g_auto(GStrv) names = sysfs_list(root, dir);
    gint64 power = sysfs_number(root, dir, "power1_average", -1);

    for (guint i = 0; names[i]; i++)
        if (g_str_has_prefix(names[i], "temp") && g_str_has_suffix(names[i], "_input"))
            read_temperature(root, dir, names[i], readings);
    if (power < 0)
        power = sysfs_number(root, dir, "power1_input", -1);
    if (power >= 0) {
        readings->has_power = TRUE;
        readings->power = power;
    }
}

static void read_hwmon(HostRoot *root, const char *device, GpuReadings *readings)
{
    g_autofree char *dir = g_build_filename(device, "hwmon", NULL);
    g_auto(GStrv) names = sysfs_list(root, dir);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *sensors = g_build_filename(dir, names[i], NULL);

        read_sensors(root, sensors, readings);
    }
}

/* The kernel says 0 or 255 if it does not know. */
static guint width(HostRoot *root, const char *dir, const char *attribute)
{
    gint64 lanes = sysfs_number(root, dir, attribute, 0);

    return lanes > 0 && lanes < 255 ? (guint)lanes : 0;
}

/* The GPU's maximum, or its slot's if that is less: a card may be in such a slot on purpose. */
static guint possible_width(HostRoot *root, const char *dir)
{
    g_autofree char *port = g_path_get_dirname(dir);
    guint card = width(root, dir, "max_link_width");
    guint slot = width(root, port, "max_link_width");

    return slot ? MIN(card, slot) : card;
}

static gboolean is_nvidia(const PciDevice *pci)
{
    return g_strcmp0(pci->driver, NVIDIA_DRIVER) == 0;
}

gboolean gpu_energy_read(HostRoot *root, const PciDevice *pci, guint64 *energy, gint64 *at)
{
    g_autofree char *hwmon = g_build_filename(pci->dir, "hwmon", NULL);
    g_auto(GStrv) names = sysfs_list(root, hwmon);

    if (is_nvidia(pci))
        return nvidia_energy(root, pci->address, energy, at);
    *at = g_get_monotonic_time();
    for (guint i = 0; names[i]; i++) {
        g_autofree char *dir = g_build_filename(hwmon, names[i], NULL);
        gint64 uj = sysfs_number(root, dir, "energy1_input", -1);

        *energy = uj < 0 ? 0 : (guint64)uj;
        if (uj >= 0)
            return TRUE;
    }
    return FALSE;
}

void gpu_readings_read(HostRoot *root, const PciDevice *pci, GpuReadings *readings)
{
    gint64 at;

    *readings = (GpuReadings){0};
    readings->has_aer = read_aer(root, pci->dir, "aer_dev_fatal", &readings->aer_fatal);
    read_aer(root, pci->dir, "aer_dev_nonfatal", &readings->aer_nonfatal);
    read_aer(root, pci->dir, "aer_dev_correctable", &readings->aer_correctable);
    readings->link_width = width(root, pci->dir, "current_link_width");
    readings->link_width_max = possible_width(root, pci->dir);
    read_ras(root, pci->dir, readings);
    read_hwmon(root, pci->dir, readings);
    if (is_nvidia(pci))
        nvidia_sensors(root, pci->address, readings);
    readings->has_energy = gpu_energy_read(root, pci, &readings->energy, &at);
}

gboolean gpu_readings_need_a_timer(const GpuReadings *readings)
{
    /* A link of one lane has none to lose. */
    return readings->has_aer || readings->has_ecc || readings->has_temperature ||
           readings->link_width_max > 1;
}

/* How much of their GPU the processes of a vGPU's engine use, if the GPU's driver reports it. */

/* An open file of the GPU, by its driver's client id: duplicates of one have the same id. */
typedef struct {
    guint64 gpu_ns;
    guint round;
} Client;

struct DrmClients {
    HostRoot *root;
    char *uuid;
    char *gpu;
    GPtrArray *paths;    /* of the fdinfo of the GPU's files */
    GHashTable *clients; /* id to Client */
    gint64 scanned;
    guint round;
};

DrmClients *drm_clients_new(HostRoot *root, const char *uuid, const char *gpu)
{
    DrmClients *clients = g_new0(DrmClients, 1);

    clients->root = host_root_ref(root);
    clients->uuid = g_strdup(uuid);
    clients->gpu = g_strdup(gpu);
    clients->paths = g_ptr_array_new_with_free_func(g_free);
    clients->clients = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return clients;
}

void drm_clients_free(DrmClients *clients)
{
    g_hash_table_unref(clients->clients);
    g_ptr_array_unref(clients->paths);
    host_root_unref(clients->root);
    g_free(clients->uuid);
    g_free(clients->gpu);
    g_free(clients);
}

static void scan_process(DrmClients *clients, const char *process)
{
    g_autofree char *dir = g_build_filename("/proc", process, NULL);
    g_autofree char *files = g_build_filename(dir, "fd", NULL);
    g_auto(GStrv) names = sysfs_list(clients->root, files);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *link = g_build_filename(files, names[i], NULL);
        g_autofree char *target = root_link(clients->root, link);

        if (target && g_str_has_prefix(target, "/dev/dri/"))
            g_ptr_array_add(clients->paths, g_build_filename(dir, "fdinfo", names[i], NULL));
    }
}

static void scan(DrmClients *clients)
{
    gint64 now = g_get_monotonic_time();
    g_auto(GStrv) processes = NULL;

    if (clients->scanned && now - clients->scanned < DRM_SCAN_US)
        return;
    clients->scanned = now;
    processes = engine_unit_processes(clients->root, clients->uuid);
    g_ptr_array_set_size(clients->paths, 0);
    for (guint i = 0; processes[i] && processes[i][0]; i++)
        scan_process(clients, processes[i]);
}

/* "12 KiB" */
static guint64 bytes_of(const char *value)
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    char *unit;
    guint64 bytes = g_ascii_strtoull(value, &unit, 10);

    while (*unit == ' ')
        unit++;
    for (guint i = 0; i < G_N_ELEMENTS(units); i++)
        if (g_str_equal(unit, units[i]))
            return bytes << (10 * (i + 1));
    return bytes;
}

/**
 * Info - one fdinfo
 * @resident: drivers that report it also report "drm-memory-vram", its older name
 */
typedef struct {
    const char *gpu;
    const char *client;
    gboolean has_ns;
    guint64 ns;
    gboolean has_vram;
    guint64 memory;
    guint64 resident;
} Info;

static void read_pair(Info *info, const char *key, const char *value)
{
    if (g_str_equal(key, "drm-pdev")) {
        info->gpu = value;
    } else if (g_str_equal(key, "drm-client-id")) {
        info->client = value;
    } else if (g_str_has_prefix(key, "drm-resident-vram") ||
               g_str_has_prefix(key, "drm-resident-local")) {
        info->has_vram = TRUE;
        info->resident += bytes_of(value);
    } else if (g_str_equal(key, "drm-memory-vram")) {
        info->has_vram = TRUE;
        info->memory += bytes_of(value);
    } else if (g_str_has_prefix(key, "drm-engine-") &&
               !g_str_has_prefix(key, "drm-engine-capacity-")) {
        info->has_ns = TRUE;
        info->ns += g_ascii_strtoull(value, NULL, 10);
    }
}

/* Pointers into @text are valid as long as it is. */
static Info parse(char *text)
{
    Info info = {0};

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':');

        if (!colon || !g_str_has_prefix(line, "drm-"))
            continue;
        *colon = '\0';
        read_pair(&info, line, g_strstrip(colon + 1));
    }
    return info;
}

/* FALSE: that is enough. */
typedef gboolean (*InfoFunc)(const Info *info, GHashTable *ids);

/* Calls @func for each of the process's files of the GPU. FALSE: it had enough. */
static gboolean each_info(HostRoot *root, guint pid, const char *gpu, guint *files, InfoFunc func,
                          GHashTable *ids)
{
    g_autofree char *dir = g_strdup_printf("/proc/%u", pid);
    g_autofree char *links = g_build_filename(dir, "fd", NULL);
    g_auto(GStrv) names = *files ? sysfs_list(root, links) : g_new0(char *, 1);

    for (guint i = 0; names[i] && *files; i++, --*files) {
        g_autofree char *link = g_build_filename(links, names[i], NULL);
        g_autofree char *target = root_link(root, link);
        g_autofree char *path = g_build_filename(dir, "fdinfo", names[i], NULL);
        g_autofree char *text = NULL;
        Info info;

        if (!target || !g_str_has_prefix(target, "/dev/dri/"))
            continue;
        text = root_read(root, path, NULL);
        info = text ? parse(text) : (Info){0};
        if (g_strcmp0(info.gpu, gpu) == 0 && !func(&info, ids))
            return FALSE;
    }
    return TRUE;
}

static gboolean add_id(const Info *info, GHashTable *ids)
{
    if (info->client)
        g_hash_table_add(ids, g_strdup(info->client));
    return TRUE;
}

void drm_process_clients(HostRoot *root, guint pid, const char *gpu, GHashTable *ids, guint *files)
{
    each_info(root, pid, gpu, files, add_id, ids);
}

static gboolean is_unused(const Info *info, GHashTable *ids)
{
    return (!info->ns && !info->memory && !info->resident) ||
           (info->client && g_hash_table_contains(ids, info->client));
}

gboolean drm_process_uses(HostRoot *root, guint pid, const char *gpu, GHashTable *ids, guint *files)
{
    return !each_info(root, pid, gpu, files, is_unused, ids);
}

static void count(DrmClients *clients, const Info *info, DrmUse *use)
{
    Client *client;

    if (!info->client || g_strcmp0(info->gpu, clients->gpu) != 0)
        return;
    client = g_hash_table_lookup(clients->clients, info->client);
    if (!client) {
        client = g_new0(Client, 1);
        g_hash_table_insert(clients->clients, g_strdup(info->client), client);
    }
    if (client->round == clients->round)
        return;
    client->round = clients->round;
    use->known |= info->has_ns;
    if (info->ns > client->gpu_ns) {
        use->gpu_ns += info->ns - client->gpu_ns;
        client->gpu_ns = info->ns;
    }
    use->vram_known |= info->has_vram;
    use->vram += info->resident ? info->resident : info->memory;
}

static gboolean is_closed(void *id, void *value, void *data)
{
    (void)id;
    return ((const Client *)value)->round != ((const DrmClients *)data)->round;
}

void drm_clients_read(DrmClients *clients, DrmUse *use)
{
    scan(clients);
    clients->round++;
    use->vram = 0;
    for (guint i = 0; i < clients->paths->len; i++) {
        g_autofree char *text =
            root_read(clients->root, g_ptr_array_index(clients->paths, i), NULL);
        Info info;

        if (!text)
            continue;
        info = parse(text);
        count(clients, &info, use);
    }
    g_hash_table_foreach_remove(clients->clients, is_closed, clients);
}
