/* SPDX-License-Identifier: MIT */
/*
 * Names on this host are read from files that everybody may read: a shell's completion must not
 * wait for vgpud or libvirt, nor start them, nor ask for a password.
 */
#include "host-agent/vgpuctl/words.h"

#include <json-glib/json-glib.h>
#include <string.h>

#include "host-agent/vgpuctl/output.h"
#include "lib/sysfs.h"

#define PARENTS     "/sys/class/mdev_bus"
#define PCI_DEVICES "/sys/bus/pci/devices"
#define MDEVS       "/sys/bus/mdev/devices"
#define DEFINITIONS "/etc/mdevctl.d"
#define CDI_FILE    "/var/run/cdi/mdev-vgpu.json"
#define TENANTS     "/etc/vgpu/tenants.d"
/* All classes of PCI that are GPUs begin so: display controllers. */
#define GPU_CLASS "0x03"

static void find_gpus(HostRoot *root, GStrvBuilder *words)
{
    g_auto(GStrv) devices = sysfs_list(root, PCI_DEVICES);
    g_auto(GStrv) parents = sysfs_list(root, PARENTS);

    for (char **at = devices; *at; at++) {
        g_autofree char *dir = g_build_filename(PCI_DEVICES, *at, NULL);
        g_autofree char *class = sysfs_read(root, dir, "class");

        if (class && g_str_has_prefix(class, GPU_CLASS))
            g_strv_builder_add(words, *at);
    }
    /* GPUs without hardware. */
    for (char **at = parents; *at; at++)
        if (!strchr(*at, ':'))
            g_strv_builder_take(words, g_strconcat("soft:", *at, NULL));
}

/* Those that are started, and those that mdevctl keeps. */
static void find_vgpus(HostRoot *root, GStrvBuilder *words)
{
    g_auto(GStrv) started = sysfs_list(root, MDEVS);
    g_auto(GStrv) parents = sysfs_list(root, DEFINITIONS);

    g_strv_builder_addv(words, (const char **)started);
    for (char **at = parents; *at; at++) {
        g_autofree char *dir = g_build_filename(DEFINITIONS, *at, NULL);
        g_auto(GStrv) defined = sysfs_list(root, dir);

        g_strv_builder_addv(words, (const char **)defined);
    }
}

static void find_types(HostRoot *root, GStrvBuilder *words)
{
    g_auto(GStrv) parents = sysfs_list(root, PARENTS);

    for (char **at = parents; *at; at++) {
        g_autofree char *dir = g_build_filename(PARENTS, *at, "mdev_supported_types", NULL);
        g_auto(GStrv) types = sysfs_list(root, dir);

        g_strv_builder_addv(words, (const char **)types);
    }
}

/* What containers can ask for, by UUID and by name. */
static void find_slices(HostRoot *root, GStrvBuilder *words)
{
    g_autofree char *text = root_read(root, CDI_FILE, NULL);
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(JsonNode) names = NULL;
    JsonArray *list;

    if (!text || !json_parser_load_from_data(parser, text, -1, NULL))
        return;
    names = json_path_query("$.devices[*].name", json_parser_get_root(parser), NULL);
    list = names ? json_node_get_array(names) : NULL;
    for (guint i = 0; list && i < json_array_get_length(list); i++)
        g_strv_builder_add(words, json_array_get_string_element(list, i));
}

/* @suffix: of the file names, which are shown without it. */
static void find_files(HostRoot *root, const char *path, const char *suffix, GStrvBuilder *words)
{
    g_auto(GStrv) names = sysfs_list(root, path);

    for (char **at = names; *at; at++)
        if (g_str_has_suffix(*at, suffix))
            g_strv_builder_take(words, g_strndup(*at, strlen(*at) - strlen(suffix)));
}

static void find_domains(HostRoot *root, GStrvBuilder *words)
{
    find_files(root, "/etc/libvirt/qemu", ".xml", words);
    find_files(root, "/run/libvirt/qemu", ".xml", words);
}

static void find_tenants(HostRoot *root, GStrvBuilder *words)
{
    find_files(root, TENANTS, ".conf", words);
}

const WordKind word_kinds[] = {
    {"GPU", NULL, find_gpus},
    {"VGPU", NULL, find_vgpus},
    {"TYPE", NULL, find_types},
    {"SLICE", NULL, find_slices},
    {"TENANT", NULL, find_tenants},
    {"DOMAIN", NULL, find_domains},
    {"MODE", "host shared passthrough partitioned", NULL},
    {"FORMAT", "table wide name yaml json", NULL},
    {"CLASS", "guaranteed burstable best-effort", NULL},
    {"POLICY", "binpack spread", NULL},
    {"DOOR", "native guarded vfio", NULL},
    {"on|off", "on off", NULL},
    {"SHELL", "bash zsh fish", NULL},
};

const guint word_kinds_count = G_N_ELEMENTS(word_kinds);

const WordKind *word_kind_find(const char *name)
{
    g_autofree char *bare = g_strdup(*name == '[' ? name + 1 : name);
    char *end = strpbrk(bare, "].");

    if (end)
        *end = '\0';
    for (guint i = 0; i < word_kinds_count; i++)
        if (g_str_equal(word_kinds[i].name, bare))
            return &word_kinds[i];
    return NULL;
}
