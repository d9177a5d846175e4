/* SPDX-License-Identifier: MIT */
#include "lib/pci.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/conf.h"
#include "lib/gpu_name.h"
#include "lib/host_root.h"
#include "lib/mdev.h"
#include "lib/nvidia_readings.h"

/* A physical GPU in sysfs. */

#define PCI_BARS          6
#define RESOURCE_MEM      0x00000200u
#define RESOURCE_PREFETCH 0x00002000u

void hardware_free(Hardware *hardware)
{
    g_free(hardware->dir);
    g_free(hardware->driver);
    g_free(hardware->ids);
    g_free(hardware);
}

static guint64 read_hex(HostRoot *root, const char *dir, const char *name)
{
    g_autofree char *text = sysfs_read(root, dir, name);

    return text ? g_ascii_strtoull(text, NULL, 16) : 0;
}

Hardware *hardware_find(HostRoot *root, const char *address, GError **error)
{
    g_autoptr(Hardware) hardware = g_new0(Hardware, 1);
    guint class;

    hardware->dir = g_build_filename("/sys/bus/pci/devices", address, NULL);
    if (!root_is(root, hardware->dir, G_FILE_TEST_IS_DIR)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_ABSENT,
                    "GPU %s: there is no such PCI device; lspci -D lists the devices", address);
        return NULL;
    }
    class = (guint)read_hex(root, hardware->dir, "class");
    if (class >> 16 != PCI_CLASS_DISPLAY) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED,
                    "GPU %s: not a display controller (PCI class %06x); correct its address in %s",
                    address, class, "gpus.conf");
        return NULL;
    }
    hardware->driver = sysfs_link_name(root, hardware->dir, "driver");
    if (!hardware->driver) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_ABSENT,
                    "GPU %s: no driver is bound to it, so nothing can run on it; load the "
                    "vendor's driver",
                    address);
        return NULL;
    }
    if (g_str_equal(hardware->driver, "vfio-pci")) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED,
                    "GPU %s: bound to vfio-pci, for a VM as a whole; to share it: vgpuctl gpu mode "
                    "%s shared",
                    address, address);
        return NULL;
    }
    hardware->ids = g_strdup_printf("%04x:%04x", (guint)read_hex(root, hardware->dir, "vendor"),
                                    (guint)read_hex(root, hardware->dir, "device"));
    return g_steal_pointer(&hardware);
}

/* Sum over the matching files; some drivers have a number per tile. */
static guint64 sum_files(HostRoot *root, const char *dir, const char *pattern)
{
    g_autofree char *full = g_build_filename(dir, pattern, NULL);
    g_auto(GStrv) paths = root_glob(root, full);
    guint64 sum = 0;

    for (guint i = 0; paths[i]; i++) {
        g_autofree char *text = root_read(root, paths[i], NULL);

        if (text)
            sum += g_ascii_strtoull(text, NULL, 0);
    }
    return sum;
}

/* "resource" has a line "start end flags" for each BAR first, then for other things. */
static guint64 largest_prefetchable_bar(HostRoot *root, const char *dir, guint *bar)
{
    g_autofree char *text = sysfs_read(root, dir, "resource");
    g_auto(GStrv) lines = text ? g_strsplit(text, "\n", -1) : NULL;
    guint64 largest = 0;

    for (guint i = 0; lines && lines[i] && i < PCI_BARS; i++) {
        unsigned long long start, end, flags;

        if (sscanf(lines[i], "%llx %llx %llx", &start, &end, &flags) != 3 || end <= start)
            continue;
        if (!(flags & RESOURCE_MEM) || !(flags & RESOURCE_PREFETCH) || end - start < largest)
            continue;
        largest = end - start + 1;
        *bar = i;
    }
    return largest;
}

/* amdgpu's table of measurements begins with its size, and then its form: a kind of chip has one.
 */
#define METRICS        "gpu_metrics"
#define METRICS_FORM   2
#define FIRST_APU_FORM 2

gboolean amdgpu_is_apu(HostRoot *root, const char *dir)
{
    g_autofree char *path = g_build_filename(dir, METRICS, NULL);
    g_autofree char *power = sysfs_read(root, dir, "power/runtime_status");
    guint8 header[METRICS_FORM + 1];
    gboolean is_apu;
    int fd;

    /* A card that sleeps is not woken for this; those in a processor do not sleep. */
    if (g_strcmp0(power, "suspended") == 0 ||
        sysfs_number(root, dir, "mem_info_gtt_total", 0) <=
            sysfs_number(root, dir, "mem_info_vram_total", G_MAXINT64))
        return FALSE;
    fd = root_open(root, path, O_RDONLY, 0);
    is_apu = fd >= 0 && read(fd, header, sizeof(header)) == sizeof(header) &&
             header[METRICS_FORM] >= FIRST_APU_FORM;
    if (fd >= 0)
        close(fd);
    return is_apu;
}

gboolean amdgpu_apu_memory(HostRoot *root, const char *dir, const char *which, guint64 *bytes)
{
    g_autofree char *vram = g_strconcat("mem_info_vram_", which, NULL);
    g_autofree char *gtt = g_strconcat("mem_info_gtt_", which, NULL);
    gint64 own = sysfs_number(root, dir, vram, -1);
    gint64 of_host = sysfs_number(root, dir, gtt, -1);

    *bytes = own >= 0 && of_host >= 0 ? (guint64)own + (guint64)of_host : 0;
    return own >= 0 && of_host >= 0;
}

gboolean hardware_vram(HostRoot *root, const char *dir, const char *driver, guint64 *bytes,
                       char **source, GError **error)
{
    static const char *const files[] = {
        "mem_info_vram_total",            /* amdgpu */
        "tile*/physical_vram_size_bytes", /* xe */
        "drm/card*/lmem_total_bytes",     /* i915 in Intel's packages */
    };
    const char *address = strrchr(dir, '/') + 1;
    guint bar = 0;

    /* Its BAR may be larger than its memory, or a small part of it. */
    if (g_str_equal(driver, NVIDIA_DRIVER)) {
        *source = g_strdup("NVIDIA's library");
        if (nvidia_memory(root, address, bytes))
            return TRUE;
        g_clear_pointer(source, g_free);
        if (nvidia_is_unified(root, address))
            g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED,
                        "GPU %s: it uses the host's memory, and NVIDIA's library does not report "
                        "how much of that; set vram= in gpus.conf",
                        address);
        else
            g_set_error(
                error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED,
                "GPU %s: NVIDIA's library has not reported its memory yet; start "
                "vgpu-nvidia-readings.service and look at its log, or set vram= in gpus.conf",
                address);
        return FALSE;
    }
    if (amdgpu_is_apu(root, dir) && amdgpu_apu_memory(root, dir, "total", bytes)) {
        *source = g_strdup_printf("%s's mem_info_vram_total and mem_info_gtt_total, the host's "
                                  "memory",
                                  driver);
        return TRUE;
    }
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        *bytes = sum_files(root, dir, files[i]);
        if (*bytes >= MIB) {
            *source = g_strdup_printf("%s's %s", driver, files[i]);
            return TRUE;
        }
    }
    *bytes = largest_prefetchable_bar(root, dir, &bar);
    if (*bytes >= MIB) {
        *source = g_strdup_printf("the size of its BAR %u; if that is not all of its memory, set "
                                  "vram= in gpus.conf",
                                  bar);
        return TRUE;
    }
    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED,
                "GPU %s: neither its driver (%s) nor a prefetchable BAR reports its memory; set "
                "vram= in gpus.conf",
                address, driver);
    return FALSE;
}

#define NVIDIA "/proc/driver/nvidia"
#define MINOR  "Device Minor:"

int nvidia_minor(HostRoot *root, const char *address)
{
    g_autofree char *dir = g_build_filename(NVIDIA, "gpus", address, NULL);
    g_autofree char *text = sysfs_read(root, dir, "information");
    const char *minor = text ? strstr(text, MINOR) : NULL;

    return minor ? (int)g_ascii_strtoll(minor + strlen(MINOR), NULL, 10) : -1;
}

GStrv nvidia_instances(HostRoot *root, const char *address)
{
    int minor = nvidia_minor(root, address);
    g_autofree char *dir = g_strdup_printf(NVIDIA "/capabilities/gpu%d/mig", minor);
    g_auto(GStrv) names = sysfs_list(root, dir);
    g_autoptr(GStrvBuilder) instances = g_strv_builder_new();

    for (guint i = 0; minor >= 0 && names[i]; i++)
        if (g_str_has_prefix(names[i], "gi"))
            g_strv_builder_add(instances, names[i]);
    return g_strv_builder_end(instances);
}

char *host_kernel_release(HostRoot *root)
{
    return sysfs_read(root, "/proc/sys/kernel", "osrelease");
}

gboolean host_kernel_is_old(const char *release)
{
    unsigned major, minor;

    return release && sscanf(release, "%u.%u", &major, &minor) == 2 &&
           (major < 6 || (major == 6 && minor < 13));
}

gboolean host_kernel_refuses(const char *release, const char *driver)
{
    static const char *const drivers[] = {"amdgpu", "i915", "nouveau", "radeon", "xe", NULL};

    return driver && host_kernel_is_old(release) && g_strv_contains(drivers, driver);
}

#define PCI_DEVICES  "/sys/bus/pci/devices"
#define IOMMU_GROUPS "/sys/kernel/iommu_groups"
#define SOFT_DEVICES "/sys/devices/virtual/vgpu-soft"

/* "16.0 GT/s PCIe"; "Unknown" where the link is down. */
static guint link_speed(HostRoot *root, const char *dir, const char *attribute)
{
    g_autofree char *text = sysfs_read(root, dir, attribute);

    return text ? (guint)(g_ascii_strtod(text, NULL) * 10 + 0.5) : 0;
}

/* The kernel says 255 if it does not know. */
static guint link_width(HostRoot *root, const char *dir, const char *attribute)
{
    gint64 width = sysfs_number(root, dir, attribute, 0);

    return width > 0 && width < 255 ? (guint)width : 0;
}

/* 8b/10b up to 5 GT/s, 128b/130b above; from 64 GT/s on (PCIe 6) in units of fixed size. */
guint64 pci_link_bandwidth(const PciLink *link)
{
    guint64 bits = (guint64)link->speed * 100000000 * link->width;

    if (link->speed <= 50)
        return bits / 10;
    return link->speed < 640 ? bits * 128 / 130 / 8 : bits / 8;
}

PciDevice *pci_device_read(HostRoot *root, const char *address)
{
    g_autofree char *link = g_build_filename(PCI_DEVICES, address, NULL);
    g_autofree char *dir = root_resolve(root, link);
    PciDevice *device;

    if (!dir)
        return NULL;
    device = g_new0(PciDevice, 1);
    device->address = g_strdup(address);
    device->vendor = (guint)sysfs_number(root, dir, "vendor", 0);
    device->device = (guint)sysfs_number(root, dir, "device", 0);
    device->class = (guint)sysfs_number(root, dir, "class", 0);
    device->driver = sysfs_link_name(root, dir, "driver");
    device->iommu_group = sysfs_link_name(root, dir, "iommu_group");
    device->numa_node = (int)sysfs_number(root, dir, "numa_node", -1);
    device->link.speed = link_speed(root, dir, "current_link_speed");
    device->link.width = link_width(root, dir, "current_link_width");
    device->max_link.speed = link_speed(root, dir, "max_link_speed");
    device->max_link.width = link_width(root, dir, "max_link_width");
    device->total_vfs = (guint)sysfs_number(root, dir, "sriov_totalvfs", 0);
    device->vfs = (guint)sysfs_number(root, dir, "sriov_numvfs", 0);
    device->physfn = sysfs_link_name(root, dir, "physfn");
    device->dir = g_strdup(dir);
    return device;
}

PciDevice *pci_device_soft(const char *address)
{
    PciDevice *device = g_new0(PciDevice, 1);

    device->address = g_strdup(address);
    device->dir = g_build_filename(SOFT_DEVICES, address + strlen(GPU_SOFT_PREFIX), NULL);
    device->numa_node = -1;
    return device;
}

void pci_device_free(PciDevice *device)
{
    g_free(device->address);
    g_free(device->dir);
    g_free(device->driver);
    g_free(device->iommu_group);
    g_free(device->physfn);
    g_free(device);
}

GStrv pci_addresses(HostRoot *root)
{
    return sysfs_list(root, PCI_DEVICES);
}

GStrv pci_group_members(HostRoot *root, const char *iommu_group)
{
    g_autofree char *dir = g_build_filename(IOMMU_GROUPS, iommu_group, "devices", NULL);

    return sysfs_list(root, dir);
}

/* A device directly below a port of a switch: the port, and the device itself. */
#define BELOW_ONE_SWITCH 2u

/* The components of its path in /sys/devices, from the host bridge ("pci0000:00") on. */
static GStrv bridges_of(const PciDevice *device)
{
    const char *host_bridge = strstr(device->dir, "/devices/");

    return g_strsplit(host_bridge ? host_bridge + strlen("/devices/") : device->dir, "/", -1);
}

static Distance between_host_bridges(const PciDevice *a, const PciDevice *b)
{
    return a->numa_node >= 0 && a->numa_node == b->numa_node ? DISTANCE_NODE : DISTANCE_SYS;
}

Distance topology_distance(const PciDevice *a, const PciDevice *b)
{
    g_auto(GStrv) left = bridges_of(a);
    g_auto(GStrv) right = bridges_of(b);
    guint common = 0;

    if (g_str_equal(a->address, b->address))
        return DISTANCE_SELF;
    if (gpu_name_is_soft(a->address) || gpu_name_is_soft(b->address))
        return DISTANCE_SYS;
    while (left[common] && right[common] && g_str_equal(left[common], right[common]))
        common++;
    if (common == 0)
        return between_host_bridges(a, b);
    if (common == 1)
        return DISTANCE_PHB;
    if (g_strv_length(left) - common <= BELOW_ONE_SWITCH &&
        g_strv_length(right) - common <= BELOW_ONE_SWITCH)
        return DISTANCE_PIX;
    return DISTANCE_PXB;
}

const char *distance_name(Distance distance)
{
    static const char *const names[] = {
        [DISTANCE_SELF] = "X",  [DISTANCE_PIX] = "PIX",   [DISTANCE_PXB] = "PXB",
        [DISTANCE_PHB] = "PHB", [DISTANCE_NODE] = "NODE", [DISTANCE_SYS] = "SYS",
    };

    return names[distance];
}

/* sysfs is not deeper than that below a function:
 * DEVICE/virtioN/drm/card0/card0-HDMI-A-1/i2c-4/i2c-dev/i2c-4 */
#define DEPTH_MAX 8

static char *device_name(HostRoot *root, const char *dir)
{
    g_autofree char *text = sysfs_read(root, dir, "uevent");
    g_auto(GStrv) lines = text ? g_strsplit(text, "\n", -1) : NULL;

    for (guint i = 0; lines && lines[i]; i++)
        if (g_str_has_prefix(lines[i], "DEVNAME="))
            return g_strdup(lines[i] + strlen("DEVNAME="));
    return NULL;
}

/* A vGPU, or another PCI device behind a bridge: they have nodes of their own. */
static gboolean is_other_device(const char *name)
{
    return g_uuid_string_is_valid(name) || gpu_name_valid(name);
}

static void walk_nodes(GStrvBuilder *nodes, HostRoot *root, const char *dir, guint depth)
{
    g_auto(GStrv) names = sysfs_list(root, dir);
    char *node = device_name(root, dir);

    if (node)
        g_strv_builder_take(nodes, node);
    for (guint i = 0; depth < DEPTH_MAX && names[i]; i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);

        if (!is_other_device(names[i]) && !root_is(root, path, G_FILE_TEST_IS_SYMLINK) &&
            root_is(root, path, G_FILE_TEST_IS_DIR))
            walk_nodes(nodes, root, path, depth + 1);
    }
}

GStrv nodes_of_device(HostRoot *root, const PciDevice *device)
{
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    int minor = nvidia_minor(root, device->address);

    walk_nodes(nodes, root, device->dir, 0);
    /* NVIDIA's are not in sysfs. */
    if (minor >= 0)
        g_strv_builder_take(nodes, g_strdup_printf("nvidia%d", minor));
    if (g_strcmp0(device->driver, "vfio-pci") == 0 && device->iommu_group)
        g_strv_builder_take(nodes, g_build_filename("vfio", device->iommu_group, NULL));
    return g_strv_builder_end(nodes);
}

GStrv nodes_of_vgpu(HostRoot *root, const char *uuid)
{
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    g_autofree char *dir = mdev_path(uuid);
    g_autofree char *group = mdev_group(root, uuid);

    if (group)
        g_strv_builder_take(nodes, g_build_filename("vfio", group, NULL));
    walk_nodes(nodes, root, dir, 0);
    return g_strv_builder_end(nodes);
}
