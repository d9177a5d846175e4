/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/wanted.h"

#include "lib/bus.h"
#include "lib/root.h"

static void add_group(GString *text, const char *name, GpuMode mode, guint partitions)
{
    g_string_append_printf(text, "\n[gpu %s]\nmode=%s\n", name, gpu_mode_name(mode));
    if (partitions)
        g_string_append_printf(text, "partitions=%u\n", partitions);
}

static gboolean fail(const GError *cause, GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "the wanted mode can't be stored: %s",
                cause->message);
    return FALSE;
}

gboolean wanted_set(const char *root, const char *address, GpuMode mode, guint partitions,
                    GError **error)
{
    g_autoptr(GString) text = g_string_new(
        "# The modes that GPUs were given with \"vgpuctl gpu mode\". Written by vgpud; see "
        "vgpu-types.conf(5).\n");
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) entries = gpus_load_state(root, &cause);

    if (!entries)
        return fail(cause, error);
    for (guint i = 0; i < entries->len; i++) {
        const GpuEntry *entry = g_ptr_array_index(entries, i);

        if (!g_str_equal(entry->name, address))
            add_group(text, entry->name, entry->mode, entry->partitions);
    }
    add_group(text, address, mode, partitions);
    return root_write(root, GPUS_STATE, text->str, 0644, &cause) || fail(cause, error);
}
