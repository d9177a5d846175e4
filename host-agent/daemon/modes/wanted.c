/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/wanted.h"

#include "lib/bus.h"
#include "lib/host_root.h"

static void add_group(GString *text, const char *name, GpuMode mode, guint partitions)
{
    g_string_append_printf(text, "\n[gpu %s]\nmode=%s\n", name, gpu_mode_name(mode));
    if (partitions)
        g_string_append_printf(text, "partitions=%u\n", partitions);
}

static gboolean set_store_error(const GError *cause, GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "the wanted mode can't be stored: %s",
                cause->message);
    return FALSE;
}

static gboolean store_modes(HostRoot *root, const GString *text, GError **error)
{
    g_autoptr(GError) cause = NULL;

    return root_write(root, GPUS_STATE, text->str, 0644, &cause) || set_store_error(cause, error);
}

static GString *text_new(void)
{
    return g_string_new(
        "# The modes that GPUs were given with \"vgpuctl gpu mode\". Written by vgpud; see "
        "vgpu-types.conf(5).\n");
}

gboolean wanted_set(HostRoot *root, const char *address, GpuMode mode, guint partitions,
                    GError **error)
{
    g_autoptr(GString) text = text_new();
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) entries = gpus_load_state(root, &cause);

    if (!entries)
        return set_store_error(cause, error);
    for (guint i = 0; i < entries->len; i++) {
        const GpuEntry *entry = g_ptr_array_index(entries, i);

        if (!g_str_equal(entry->name, address))
            add_group(text, entry->name, entry->mode, entry->partitions);
    }
    add_group(text, address, mode, partitions);
    return store_modes(root, text, error);
}

static gboolean is_same(const GpuEntry *entry, const GpuEntry *other)
{
    return entry->mode == other->mode && entry->partitions == other->partitions;
}

const char *wanted_source(const GPtrArray *declared, const GPtrArray *set, const char *address)
{
    const GpuEntry *entry = declared ? gpus_find(declared, address) : NULL;
    const GpuEntry *by_command = set ? gpus_find(set, address) : NULL;

    if (!by_command)
        return entry ? "declared" : "";
    if (!entry)
        return "by command";
    return is_same(entry, by_command) ? "declared" : "by command, declared otherwise";
}

static void tell_if_other(const GpuEntry *from, const GpuEntry *to, GStrvBuilder *changes)
{
    if (!is_same(from, to))
        g_strv_builder_take(changes, g_strdup_printf("GPU %s: mode %s as " GPUS_CONF
                                                     " declares it, not %s as set by command",
                                                     to->name, gpu_mode_name(to->mode),
                                                     gpu_mode_name(from->mode)));
}

gboolean wanted_apply(HostRoot *root, gboolean dry_run, GStrvBuilder *changes, GError **error)
{
    g_autoptr(GString) text = text_new();
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) declared = gpus_load_conf(root, &cause);
    g_autoptr(GPtrArray) set = declared ? gpus_load_state(root, &cause) : NULL;

    if (!set)
        return set_store_error(cause, error);
    for (guint i = 0; i < set->len; i++) {
        const GpuEntry *entry = g_ptr_array_index(set, i);
        const GpuEntry *other = gpus_find(declared, entry->name);

        if (other)
            tell_if_other(entry, other, changes);
        else
            add_group(text, entry->name, entry->mode, entry->partitions);
    }
    return dry_run || !set->len || store_modes(root, text, error);
}
