/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/recorded_host.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/unit/file_tree.h"

/* A device that is being written: its directory in the tree. */
struct device {
    HostRoot *root;
    char *dir;
    char *address;
};

static void write_file(const struct device *device, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(device->dir, name, NULL);
    g_autofree char *line = g_strconcat(text, "\n", NULL);

    file_tree_write(device->root, path, line);
}

static void write_link(const struct device *device, const char *name, const char *target)
{
    g_autofree char *path = g_build_filename(device->dir, name, NULL);

    file_tree_link(device->root, path, target);
}

static void write_driver(const struct device *device, const char *driver)
{
    g_autofree char *target = g_strconcat("/sys/bus/pci/drivers/", driver, NULL);

    write_link(device, "driver", target);
}

static void write_group(const struct device *device, const char *group)
{
    g_autofree char *target = g_strconcat("/sys/kernel/iommu_groups/", group, NULL);
    g_autofree char *member =
        g_strdup_printf("/sys/kernel/iommu_groups/%s/devices/%s", group, device->address);

    write_link(device, "iommu_group", target);
    file_tree_link(device->root, member, device->dir);
}

static void write_link_state(const struct device *device, const char *state)
{
    static const char *const names[][2] = {{"current_link_speed", "current_link_width"},
                                           {"max_link_speed", "max_link_width"}};
    g_auto(GStrv) links = g_strsplit(state, ",", 2);

    for (guint i = 0; links[i]; i++) {
        g_auto(GStrv) parts = g_strsplit(links[i], "/", 2);
        g_autofree char *speed = g_strconcat(parts[0], " GT/s PCIe", NULL);

        write_file(device, names[i][0], speed);
        write_file(device, names[i][1], parts[1]);
    }
}

/* A prefetchable 64-bit BAR of that many bytes. */
static void write_bar(const struct device *device, const char *bytes)
{
    guint64 size = g_ascii_strtoull(bytes, NULL, 0);
    g_autofree char *line =
        g_strdup_printf("0x0000380000000000 0x%016" G_GINT64_MODIFIER "x 0x000000000014220c",
                        G_GUINT64_CONSTANT(0x380000000000) + size - 1);

    write_file(device, "resource", line);
}

static void write_entries(const struct device *device, const char *dir, const char *names)
{
    g_auto(GStrv) list = g_strsplit(names, ",", -1);

    for (guint i = 0; list[i]; i++) {
        g_autofree char *name = g_build_filename(dir, list[i], "uevent", NULL);

        write_file(device, name, "");
    }
}

static void write_key(const struct device *device, const char *key, const char *value)
{
    static const char *const files[][2] = {
        {"class", "class"},
        {"vendor", "vendor"},
        {"device", "device"},
        {"numa", "numa_node"},
        {"totalvfs", "sriov_totalvfs"},
        {"vfs", "sriov_numvfs"},
        {"vram", "mem_info_vram_total"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(files); i++)
        if (g_str_equal(key, files[i][0]))
            return write_file(device, files[i][1], value);
    if (g_str_equal(key, "driver"))
        return write_driver(device, value);
    if (g_str_equal(key, "group"))
        return write_group(device, value);
    if (g_str_equal(key, "link"))
        return write_link_state(device, value);
    if (g_str_equal(key, "bar"))
        return write_bar(device, value);
    if (g_str_equal(key, "drm"))
        return write_entries(device, "drm", value);
    if (g_str_equal(key, "types"))
        return write_entries(device, "mdev_supported_types", value);
    g_assert_cmpstr(key, ==, "physfn");
    write_link(device, "physfn", value);
}

void recorded_host_add(HostRoot *root, const char *line)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    g_autofree char *dir = g_strconcat("/sys/devices/", words[0], NULL);
    g_autofree char *address = g_path_get_basename(words[0]);
    g_autofree char *link = g_strconcat("/sys/bus/pci/devices/", address, NULL);
    g_autofree char *target = g_strconcat("../../../devices/", words[0], NULL);
    struct device device = {.root = root, .dir = dir, .address = address};

    file_tree_link(root, link, target);
    for (guint i = 1; words[i]; i++) {
        g_auto(GStrv) pair = g_strsplit(words[i], "=", 2);

        write_key(&device, pair[0], pair[1]);
    }
}

void recorded_host_add_vgpu(HostRoot *root, const char *path, const char *uuid, const char *type,
                            const char *attributes)
{
    g_auto(GStrv) list = g_strsplit(attributes, "|", -1);
    g_autofree char *dir = g_strdup_printf("/sys/devices/%s/%s", path, uuid);
    g_autofree char *link = g_strconcat("/sys/bus/mdev/devices/", uuid, NULL);
    g_autofree char *target = g_strdup_printf("../../../devices/%s/%s", path, uuid);
    g_autofree char *type_link = g_strconcat("../mdev_supported_types/", type, NULL);
    struct device device = {.root = root, .dir = dir};

    file_tree_link(root, link, target);
    write_link(&device, "mdev_type", type_link);
    for (guint i = 0; list[i]; i++) {
        g_auto(GStrv) pair = g_strsplit(list[i], "=", 2);
        g_autofree char *name = g_strconcat("vgpu/", pair[0], NULL);

        write_file(&device, name, pair[1]);
    }
}

void recorded_host_remove(HostRoot *root, const char *address)
{
    g_autofree char *link = root_path(root, "/sys/bus/pci/devices", address, NULL);

    g_assert_cmpint(unlink(link), ==, 0);
}

void recorded_host_remove_vgpu(HostRoot *root, const char *uuid)
{
    g_autofree char *link = root_path(root, "/sys/bus/mdev/devices", uuid, NULL);
    g_autofree char *type = g_build_filename(link, "mdev_type", NULL);

    g_assert_cmpint(unlink(type), ==, 0);
    g_assert_cmpint(unlink(link), ==, 0);
}

HostRoot *recorded_host_new(const char *name)
{
    g_autofree char *path = g_build_filename(HOSTS, name, NULL);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    HostRoot *root = file_tree_new();

    /* Two tests cannot have one port at the same time. */
    file_tree_write(root, "/etc/vgpu/vgpud.conf", "[metrics]\nlisten=off\n");
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++)
        if (lines[i][0] && lines[i][0] != '#')
            recorded_host_add(root, lines[i]);
    return root;
}

/* libpci loses the name of its cache of names. Called by LeakSanitizer. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpci.so";
}
