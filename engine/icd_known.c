// SPDX-License-Identifier: MIT
/* What vgpu-describe has left of a GPU's driver (describe.h). */
#include "icd.h"

#include <string.h>
#include <sys/stat.h>

#define DESCRIPTIONS "/run/vgpu/vulkan"
#define GROUP        "vulkan"
#define LAST_KEY     "features"

static bool is_newer(const char *path, const struct timespec *time)
{
    struct stat st;

    return stat(path, &st) < 0 || st.st_ctim.tv_sec > time->tv_sec ||
           (st.st_ctim.tv_sec == time->tv_sec && st.st_ctim.tv_nsec >= time->tv_nsec);
}

/* Whether a driver was installed, removed or upgraded since. */
static bool has_changed(const char *const *manifests, const struct timespec *since)
{
    for (; *manifests; manifests++) {
        g_autofree char *dir = g_path_get_dirname(*manifests);

        if (is_newer(*manifests, since) || is_newer(dir, since))
            return true;
    }
    return false;
}

static const char *find_manifest(const char *const *manifests, const char *name)
{
    for (; *manifests; manifests++) {
        g_autofree char *base = g_path_get_basename(*manifests);

        if (strcmp(base, name) == 0)
            return *manifests;
    }
    return NULL;
}

char *icd_known(const char *sysroot, const struct gpu *gpu, struct icd_report *report)
{
    g_autofree char *path = g_strdup_printf("%s" DESCRIPTIONS "/%s", sysroot, gpu->name);
    g_auto(GStrv) manifests = icd_list(sysroot, NULL);
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autofree char *name = NULL;
    struct stat st;

    /* The keys are written in one piece, and this is the last one. */
    if (stat(path, &st) < 0 || !g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, NULL) ||
        !g_key_file_has_key(file, GROUP, LAST_KEY, NULL))
        return NULL;
    name = g_key_file_get_string(file, GROUP, "driver", NULL);
    if (!name || has_changed((const char *const *)manifests, &st.st_mtim))
        return NULL;
    memset(report, 0, sizeof(*report));
    report->dma_buf = g_key_file_get_boolean(file, GROUP, "exports-memory", NULL);
    return g_strdup(find_manifest((const char *const *)manifests, name));
}
