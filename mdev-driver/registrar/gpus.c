/* SPDX-License-Identifier: MIT */
#include "gpus.h"

#include <linux/vgpu.h>
#include <string.h>

#include "conf.h"
#include "error.h"
#include "units.h"

static const char *const gpu_keys[] = { "mode", "vram", NULL };

static void entry_free(GpuEntry *entry)
{
    g_free(entry->name);
    g_free(entry);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(GpuEntry, entry_free)

gboolean gpu_name_is_soft(const char *name)
{
    return g_str_has_prefix(name, GPU_SOFT_PREFIX);
}

static gboolean soft_name_valid(const char *name)
{
    return g_ascii_isalnum(name[0]) && strlen(name) + strlen(GPU_SOFT_PREFIX) < VGPU_GPU_NAME_LEN &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name);
}

gboolean gpu_name_valid(const char *name)
{
    if (gpu_name_is_soft(name))
        return soft_name_valid(name + strlen(GPU_SOFT_PREFIX));
    return g_regex_match_simple("^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7]$", name,
                                G_REGEX_DOLLAR_ENDONLY, 0);
}

static gboolean read_mode(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "mode", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    entry->shared = g_strcmp0(text, "shared") == 0;
    if (entry->shared || g_strcmp0(text, "host") == 0)
        return TRUE;
    conf_bad_value(group, "mode", text ? text : "",
                   "shared (cut into vGPUs) or host (left alone)", error);
    return FALSE;
}

static gboolean read_vram(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "vram", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (text && !size_parse(text, &entry->vram_bytes)) {
        conf_bad_value(group, "vram", text, SIZE_RULE, error);
        return FALSE;
    }
    if (!text && entry->shared && gpu_name_is_soft(entry->name)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [%s]: vram= is missing; a GPU without hardware can't be asked for its "
                    "memory, so it must be %s",
                    group->file, group->group, SIZE_RULE);
        return FALSE;
    }
    return TRUE;
}

static gboolean add_gpu(const ConfGroup *group, gpointer data, GError **error)
{
    g_autoptr(GpuEntry) entry = g_new0(GpuEntry, 1);
    GPtrArray *entries = data;

    if (!gpu_name_valid(group->name)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [%s]: \"%s\" can't be the name of a GPU: it must be %s", group->file,
                    group->group, group->name, GPU_NAME_RULE);
        return FALSE;
    }
    entry->name = g_strdup(group->name);
    if (!read_mode(group, entry, error) || !read_vram(group, entry, error))
        return FALSE;
    g_ptr_array_add(entries, g_steal_pointer(&entry));
    return TRUE;
}

GPtrArray *gpus_load(const char *root, GError **error)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
    g_autofree char *file = g_strconcat(root, GPUS_CONF, NULL);

    if (g_file_test(file, G_FILE_TEST_EXISTS) &&
        !conf_foreach(file, "gpu", gpu_keys, add_gpu, entries, error))
        return NULL;
    return g_steal_pointer(&entries);
}
