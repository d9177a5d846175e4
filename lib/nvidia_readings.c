/* SPDX-License-Identifier: MIT */
#include "lib/nvidia_readings.h"

#define DIRECTORY "/run/vgpu/readings"
#define GROUP     "gpu"
#define MEMORY    "process_memory"
#define BUSY      "process_busy"
#define LINKS     "nvlink"
#define SWITCH    "switch"
/* Of the period, 30 s, and as long as a reading may take on a busy host. */
#define OLD_US (120 * G_USEC_PER_SEC)

static GKeyFile *file_of(HostRoot *root, const char *address)
{
    g_autofree char *path = g_build_filename(DIRECTORY, address, NULL);

    return root_read_keys(root, path, G_KEY_FILE_NONE, NULL);
}

static gboolean read_number(GKeyFile *file, const char *key, guint64 *value)
{
    g_autoptr(GError) error = NULL;

    *value = g_key_file_get_uint64(file, GROUP, key, &error);
    return error == NULL;
}

/* FALSE: it is not there, or too old. @at: when it was read, of CLOCK_MONOTONIC in us. */
static gboolean is_fresh(GKeyFile *file, gint64 *at)
{
    guint64 time = 0;

    if (!file || !read_number(file, "time", &time))
        return FALSE;
    *at = (gint64)time;
    return g_get_monotonic_time() - *at < OLD_US;
}

gboolean nvidia_memory(HostRoot *root, const char *address, guint64 *bytes)
{
    g_autoptr(GKeyFile) file = file_of(root, address);

    return file && read_number(file, "memory", bytes) && *bytes > 0;
}

gboolean nvidia_memory_used(HostRoot *root, const char *address, guint64 *bytes, gint64 *at)
{
    g_autoptr(GKeyFile) file = file_of(root, address);

    return is_fresh(file, at) && read_number(file, "memory_used", bytes);
}

gboolean nvidia_is_unified(HostRoot *root, const char *address)
{
    g_autoptr(GKeyFile) file = file_of(root, address);

    return file && g_key_file_get_boolean(file, GROUP, "unified", NULL);
}

void nvidia_speeds(HostRoot *root, const char *address, guint64 *flops, guint64 *bandwidth)
{
    g_autoptr(GKeyFile) file = file_of(root, address);

    if (!file || !read_number(file, "flops", flops))
        *flops = 0;
    if (!file || !read_number(file, "memory_bandwidth", bandwidth))
        *bandwidth = 0;
}

static guint links_to(GKeyFile *file, const char *end)
{
    return file ? (guint)g_key_file_get_uint64(file, LINKS, end, NULL) : 0;
}

guint nvidia_links(HostRoot *root, const char *address, const char *other)
{
    g_autoptr(GKeyFile) file = file_of(root, address), others = file_of(root, other);
    guint direct = links_to(file, other);

    return direct ? direct : MIN(links_to(file, SWITCH), links_to(others, SWITCH));
}

gboolean nvidia_energy(HostRoot *root, const char *address, guint64 *energy, gint64 *at)
{
    g_autoptr(GKeyFile) file = file_of(root, address);

    return is_fresh(file, at) && read_number(file, "energy", energy);
}

void nvidia_sensors(HostRoot *root, const char *address, GpuReadings *readings)
{
    g_autoptr(GKeyFile) file = file_of(root, address);
    guint64 value;
    gint64 at;

    if (!is_fresh(file, &at))
        return;
    readings->has_temperature = read_number(file, "temperature", &value);
    readings->temperature = (gint64)value;
    if (read_number(file, "temperature_limit", &value))
        readings->temperature_limit = (gint64)value;
    g_strlcpy(readings->sensor, "gpu", sizeof(readings->sensor));
    readings->has_power = read_number(file, "power", &value);
    readings->power = (gint64)value;
    readings->has_ecc = read_number(file, "ecc_uncorrectable", &readings->ecc_uncorrectable) &&
                        read_number(file, "ecc_correctable", &readings->ecc_correctable);
}

gboolean nvidia_busy(HostRoot *root, const char *address, guint *percent)
{
    g_autoptr(GKeyFile) file = file_of(root, address);
    guint64 value = 0;
    gint64 at;
    gboolean known = is_fresh(file, &at) && read_number(file, "busy", &value) && value <= 100;

    *percent = known ? (guint)value : 0;
    return known;
}

static void add_process(GKeyFile *file, const char *pid, GHashTable *processes)
{
    guint number = (guint)g_ascii_strtoull(pid, NULL, 10);
    guint64 busy = g_key_file_get_uint64(file, BUSY, pid, NULL);
    const NvidiaProcess process = {
        .vram = g_key_file_get_uint64(file, MEMORY, pid, NULL),
        .busy = (guint)MIN(busy, 100),
    };

    if (number)
        g_hash_table_insert(processes, GUINT_TO_POINTER(number),
                            g_memdup2(&process, sizeof(process)));
}

GHashTable *nvidia_processes(HostRoot *root, const char *address, gint64 *at)
{
    g_autoptr(GKeyFile) file = file_of(root, address);
    g_auto(GStrv) pids = NULL;
    GHashTable *processes;

    if (!is_fresh(file, at))
        return NULL;
    pids = g_key_file_get_keys(file, MEMORY, NULL, NULL);
    processes = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (guint i = 0; pids && pids[i]; i++)
        add_process(file, pids[i], processes);
    return processes;
}
