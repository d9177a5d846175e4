/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/completion.h"

#include <stdio.h>
#include <string.h>
#include <json-glib/json-glib.h>

#include "lib/host_root.h"
#include "host-agent/vgpuctl/output.h"

/*
 * Names on this host are read from files that everybody may read: a shell's completion must not
 * wait for vgpud or libvirt, nor start them, nor ask for a password.
 */

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

/* vGPUs, and what containers can ask for, by UUID and by name. */
static void find_slices(HostRoot *root, GStrvBuilder *words)
{
    g_autofree char *text = root_read(root, CDI_FILE, NULL);
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(JsonNode) names = NULL;
    JsonArray *list;

    find_vgpus(root, words);
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
    {"POOL", "local slurm kubernetes", NULL},
    {"FORMAT", "table wide name yaml json", NULL},
    {"CLASS", "guaranteed burstable best-effort", NULL},
    {"POLICY", "binpack spread", NULL},
    {"DOOR", "auto native guarded vfio", NULL},
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

/* vgpuctl completion, and the words that its scripts ask for: vgpuctl complete. */

static void each_of(const GOptionEntry *options, const Command *command, CompletionFunc func,
                    GString *text)
{
    for (; options && options->long_name; options++)
        if (!(options->flags & G_OPTION_FLAG_HIDDEN))
            func(options, text, command);
}

void completion_each_option(const Command *command, CompletionFunc func, GString *text)
{
    static const GOptionEntry help[] = {
        {"help", 'h', 0, G_OPTION_ARG_NONE, NULL, "Show help options", NULL},
        G_OPTION_ENTRY_NULL,
    };

    each_of(command->options, command, func, text);
    each_of(command_attributes(command), command, func, text);
    if (command->flags & COMMAND_LISTS)
        each_of(everywhere_list_options, command, func, text);
    each_of(everywhere_options, command, func, text);
    each_of(help, command, func, text);
}

gboolean completion_has_value(const GOptionEntry *option)
{
    return option->arg != G_OPTION_ARG_NONE;
}

static void add_value_option(const GOptionEntry *option, GString *text, const Command *command)
{
    (void)command;
    if (!completion_has_value(option))
        return;
    if (option->short_name)
        g_string_append_printf(text, "-%c\n", option->short_name);
    g_string_append_printf(text, "--%s\n", option->long_name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *completion_value_options(const char *between)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GString) joined = g_string_new(NULL);
    g_auto(GStrv) all = NULL;

    for (guint i = 0; i < commands_count; i++)
        completion_each_option(&commands[i], add_value_option, text);
    all = g_strsplit(text->str, "\n", -1);
    qsort(all, g_strv_length(all), sizeof(*all), by_name);
    for (guint i = 0; all[i]; i++)
        if (*all[i] && (i == 0 || !g_str_equal(all[i], all[i - 1])))
            g_string_append_printf(joined, "%s%s", joined->len ? between : "", all[i]);
    return g_string_free(g_steal_pointer(&joined), FALSE);
}

gboolean completion_is_first(const Command *command)
{
    return !(command->flags & COMMAND_HIDDEN) &&
           (command == commands || !g_str_equal(command[-1].noun, command->noun));
}

gboolean completion_is_last(const Command *command)
{
    const Command *end = commands + commands_count, *next = command + 1;

    while (next < end && next->flags & COMMAND_HIDDEN)
        next++;
    return next == end || !g_str_equal(next->noun, command->noun);
}

gboolean completion_command(Client *client, const Options *options, char **args, GError **error)
{
    static const struct {
        const char *shell;
        char *(*script)(void);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

    (void)client;
    for (guint i = 0; i < G_N_ELEMENTS(shells); i++) {
        if (g_str_equal(args[0], shells[i].shell)) {
            g_autofree char *script = shells[i].script();

            fputs(script, options->out);
            return TRUE;
        }
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                "there are no completions for \"%s\"; usage: vgpuctl completion bash|zsh|fish",
                args[0]);
    return FALSE;
}

gboolean complete_command(Client *client, const Options *options, char **args, GError **error)
{
    const WordKind *kind = word_kind_find(args[0]);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) words = NULL;

    (void)client;
    (void)error;
    if (!kind || !kind->find)
        return TRUE;
    kind->find(options->root, builder);
    words = g_strv_builder_end(builder);
    qsort(words, g_strv_length(words), sizeof(*words), by_name);
    for (guint i = 0; words[i]; i++)
        if (i == 0 || !g_str_equal(words[i], words[i - 1]))
            output_line(options, "%s", words[i]);
    return TRUE;
}
