// SPDX-License-Identifier: MIT
#include "icd.h"

#include "exit_code.h"

#include <string.h>

static const char *const icd_dirs[] = {"/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d"};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_dir(GPtrArray *manifests, const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    guint first = manifests->len;

    while (dir && (name = g_dir_read_name(dir))) {
        if (g_str_has_suffix(name, ".json"))
            g_ptr_array_add(manifests, g_build_filename(path, name, NULL));
    }
    if (manifests->len > first)
        qsort(manifests->pdata + first, manifests->len - first, sizeof(void *), compare_names);
}

/* The order is otherwise unchanged. */
static void move_to_front(GPtrArray *manifests, const char *hint)
{
    guint front = 0;

    for (guint i = 0; i < manifests->len; i++) {
        g_autofree char *name = g_path_get_basename(manifests->pdata[i]);

        if (strstr(name, hint))
            g_ptr_array_insert(manifests, (gint)front++, g_ptr_array_steal_index(manifests, i));
    }
}

GStrv icd_list(const char *sysroot, const char *hint)
{
    GPtrArray *manifests = g_ptr_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(icd_dirs); i++) {
        g_autofree char *path = g_strconcat(sysroot, icd_dirs[i], NULL);

        add_dir(manifests, path);
    }
    if (hint)
        move_to_front(manifests, hint);
    g_ptr_array_add(manifests, NULL);
    return (GStrv)g_ptr_array_free(manifests, FALSE);
}

bool icd_matches(const struct icd_report *report, const struct gpu *gpu)
{
    if (report->devices != 1)
        return false;
    if (gpu->soft)
        return report->cpu;
    if (report->has_drm)
        return report->render_major == gpu->render_major &&
               report->render_minor == gpu->render_minor;
    return report->has_pci && report->domain == gpu->domain && report->bus == gpu->bus &&
           report->device == gpu->device && report->function == gpu->function;
}

static char *describe_mismatch(const char *manifest, const struct icd_report *report)
{
    g_autofree char *name = g_path_get_basename(manifest);

    if (report->devices == 1 && report->has_drm)
        return g_strdup_printf("%s shows %s at %" G_GINT64_FORMAT ":%" G_GINT64_FORMAT, name,
                               report->name, report->render_major, report->render_minor);
    return g_strdup_printf("%s shows %u device(s), first %s", name, report->devices, report->name);
}

#define BEST_RANK 2

static int rank_report(const struct icd_report *report)
{
    return report->dma_buf ? BEST_RANK : report->opaque_fd;
}

char *icd_choose(const struct gpu *gpu, const char *const *manifests, struct icd_report *report,
                 GError **error)
{
    g_autoptr(GString) seen = g_string_new(NULL);
    const char *best = NULL;

    for (; *manifests; manifests++) {
        struct icd_report found;

        if (!icd_probe(*manifests, &found))
            continue;
        if (icd_matches(&found, gpu)) {
            if (!best || rank_report(&found) > rank_report(report)) {
                best = *manifests;
                *report = found;
            }
            if (rank_report(report) == BEST_RANK)
                break;
        } else {
            g_autofree char *text = describe_mismatch(*manifests, &found);

            g_string_append_printf(seen, "%s%s", seen->len ? "; " : "", text);
        }
    }
    if (best)
        return g_strdup(best);

    g_set_error(error, ENGINE_ERROR, EXIT_CODE_GPU,
                "GPU %s: no installed Vulkan driver shows exactly this GPU (%s)", gpu->name,
                seen->len ? seen->str
                          : "none shows any; install mesa-vulkan-drivers or the "
                            "vendor's driver");
    return NULL;
}
