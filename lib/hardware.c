/* SPDX-License-Identifier: MIT */
#include "lib/hardware.h"

#include <stdio.h>
#include <string.h>

#include "lib/conf.h"
#include "lib/host_root.h"
#include "lib/sysfs.h"
#include "lib/units.h"

#define PCI_BARS          6
#define PCI_CLASS_DISPLAY 0x03
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
                    "GPU %s: bound to vfio-pci, for a VM as a whole; bind the vendor's driver to "
                    "share it",
                    address);
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

gboolean hardware_vram(HostRoot *root, const char *dir, const char *driver, guint64 *bytes,
                       char **source, GError **error)
{
    static const char *const files[] = {
        "mem_info_vram_total",            /* amdgpu */
        "tile*/physical_vram_size_bytes", /* xe */
        "drm/card*/lmem_total_bytes",     /* i915 in Intel's packages */
    };
    guint bar = 0;

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
                strrchr(dir, '/') + 1, driver);
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
