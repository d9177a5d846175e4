/* SPDX-License-Identifier: MIT */
#include "lib/readings.h"

#include <string.h>

#include "lib/host_root.h"
#include "lib/nvidia_readings.h"

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
static guint link_width_of(HostRoot *root, const char *dir, const char *attribute)
{
    gint64 lanes = sysfs_number(root, dir, attribute, 0);

    return lanes > 0 && lanes < 255 ? (guint)lanes : 0;
}

/* The GPU's maximum, or its slot's if that is less: a card may be in such a slot on purpose. */
static guint possible_width(HostRoot *root, const char *dir)
{
    g_autofree char *port = g_path_get_dirname(dir);
    guint card = link_width_of(root, dir, "max_link_width");
    guint slot = link_width_of(root, port, "max_link_width");

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

/* amdgpu's */
static gboolean read_busy(HostRoot *root, const char *dir, guint *percent)
{
    gint64 value = sysfs_number(root, dir, "gpu_busy_percent", -1);
    gboolean known = value >= 0 && value <= 100;

    *percent = known ? (guint)value : 0;
    return known;
}

/* Reading its sensors would wake it. */
static gboolean is_suspended(HostRoot *root, const char *dir)
{
    g_autofree char *status = sysfs_read(root, dir, "power/runtime_status");

    return g_strcmp0(status, "suspended") == 0;
}

void gpu_readings_read(HostRoot *root, const PciDevice *pci, GpuReadings *readings)
{
    gint64 at;

    *readings = (GpuReadings){0};
    readings->has_aer = read_aer(root, pci->dir, "aer_dev_fatal", &readings->aer_fatal);
    read_aer(root, pci->dir, "aer_dev_nonfatal", &readings->aer_nonfatal);
    read_aer(root, pci->dir, "aer_dev_correctable", &readings->aer_correctable);
    readings->link_width = link_width_of(root, pci->dir, "current_link_width");
    readings->link_width_max = possible_width(root, pci->dir);
    if (!is_suspended(root, pci->dir)) {
        read_ras(root, pci->dir, readings);
        read_hwmon(root, pci->dir, readings);
    }
    if (is_nvidia(pci))
        nvidia_sensors(root, pci->address, readings);
    readings->has_busy = is_nvidia(pci) ? nvidia_busy(root, pci->address, &readings->busy)
                                        : read_busy(root, pci->dir, &readings->busy);
    readings->has_energy = gpu_energy_read(root, pci, &readings->energy, &at);
}

gboolean gpu_readings_need_a_timer(const GpuReadings *readings)
{
    /* A link of one lane has none to lose. */
    return readings->has_aer || readings->has_ecc || readings->has_temperature ||
           readings->link_width_max > 1;
}
