/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/arbiters/shares.h"

#include "host-agent/model/engines.h"

#include <glib/gstdio.h>
#include <string.h>

#define SUFFIX          ".conf"
#define PPM_PER_PERCENT 10000
#define NO_CAP          100

static char *gpu_dir(const char *root, const char *gpu)
{
    return g_build_filename(root[0] ? root : "/", GOVERNOR_DIR, gpu, NULL);
}

static char *slices_dir(const char *root, const char *gpu)
{
    return g_build_filename(root[0] ? root : "/", GOVERNOR_DIR, gpu, "slices", NULL);
}

static char *slice_path(const char *root, const char *gpu, const char *uuid)
{
    g_autofree char *dir = slices_dir(root, gpu);

    return g_strdup_printf("%s/%s" SUFFIX, dir, uuid);
}

static gboolean put_text(const char *path, const char *text, GError **error)
{
    g_autofree char *before = NULL;

    if (g_file_get_contents(path, &before, NULL, NULL) && g_str_equal(before, text))
        return TRUE;
    /* In /run: what a crash of the machine would lose is made anew. */
    return g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, error);
}

static char *slice_text(const Slice *slice)
{
    gboolean capped = slice->cap > 0 && slice->cap < NO_CAP;
    g_autofree char *names = slice->engines ? engines_format(slice->engines) : NULL;
    g_autofree char *engines = names ? g_strdup_printf("engines=%s\n", names) : g_strdup("");

    return g_strdup_printf("[slice]\n"
                           "weight=%u\n"
                           "cap=%u\n"
                           "hard=%s\n"
                           "priority=%u\n"
                           "vram=%" G_GUINT64_FORMAT "\n"
                           "spill=%" G_GUINT64_FORMAT "\n"
                           "share=%u\n"
                           "%s",
                           slice->weight, capped ? slice->cap : 0, capped ? "true" : "false",
                           slice->priority, slice->vram, slice->oversubscribe,
                           slice->compute * PPM_PER_PERCENT, engines);
}

static gboolean put_gpu(const char *root, const char *gpu, guint64 vram, GpuPolicy policy,
                        GError **error)
{
    g_autofree char *dir = gpu_dir(root, gpu);
    g_autofree char *path = g_build_filename(dir, "gpu" SUFFIX, NULL);
    g_autofree char *text = g_strdup_printf("[gpu]\nvram=%" G_GUINT64_FORMAT "\npolicy=%s\n", vram,
                                            gpu_policy_name(policy));

    return put_text(path, text, error);
}

gboolean shares_put(const char *root, const Slice *slice, GError **error)
{
    g_autofree char *path = slice_path(root, slice->gpu, slice->uuid);
    g_autofree char *text = slice_text(slice);

    return put_text(path, text, error);
}

void shares_forget(const char *root, const char *gpu, const char *uuid)
{
    g_autofree char *path = slice_path(root, gpu, uuid);

    g_unlink(path);
}

/* "UUID.conf": a vGPU's; what has other names is not vgpud's. */
static gboolean is_vgpus(const char *name)
{
    g_autofree char *uuid = g_str_has_suffix(name, SUFFIX)
                                ? g_strndup(name, strlen(name) - strlen(SUFFIX))
                                : NULL;

    return uuid && g_uuid_string_is_valid(uuid);
}

/* Takes away the files of vGPUs that are not in @wanted, a set of file names. */
static void sweep(const char *dir, GHashTable *wanted)
{
    GDir *names = g_dir_open(dir, 0, NULL);
    const char *name;

    while (names && (name = g_dir_read_name(names))) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        if (is_vgpus(name) && (!wanted || !g_hash_table_contains(wanted, name)))
            g_unlink(path);
    }
    g_clear_pointer(&names, g_dir_close);
}

gboolean shares_sync(const char *root, const char *gpu, guint64 vram, GpuPolicy policy,
                     const GPtrArray *slices, GError **error)
{
    g_autofree char *dir = slices_dir(root, gpu);
    g_autoptr(GHashTable) wanted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    gboolean ok;

    g_mkdir_with_parents(dir, 0755);
    ok = put_gpu(root, gpu, vram, policy, error);
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (!slice->present || !g_str_equal(slice->gpu, gpu))
            continue;
        g_hash_table_add(wanted, g_strconcat(slice->uuid, SUFFIX, NULL));
        ok = shares_put(root, slice, ok ? error : NULL) && ok;
    }
    sweep(dir, wanted);
    return ok;
}

void shares_drop(const char *root, const char *gpu)
{
    g_autofree char *slices = slices_dir(root, gpu);
    g_autofree char *dir = gpu_dir(root, gpu);
    g_autofree char *path = g_build_filename(dir, "gpu" SUFFIX, NULL);

    sweep(slices, NULL);
    g_unlink(path);
    g_rmdir(slices);
    g_rmdir(dir);
}
