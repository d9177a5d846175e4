// SPDX-License-Identifier: MIT
#include "cuda_alone.h"

#include "icd.h"
#include "sandbox.h"

#include <string.h>

/* For nodes that a program makes at boot. */
#define PATIENCE (25 * G_TIME_SPAN_SECOND)

char *cuda_alone_why(const char *name, const struct options *options)
{
    g_autoptr(GError) reason = NULL;
    struct gpu *gpu = gpu_lookup_cuda(name, options->sysroot, NULL);
    g_autofree char *module = g_strconcat(options->sysroot, "/sys/module/nvidia_drm", NULL);
    g_auto(GStrv) manifests = icd_list(options->sysroot, "nvidia");
    g_autofree char *first = manifests[0] ? g_path_get_basename(manifests[0]) : NULL;

    if (!gpu)
        return NULL;
    gpu_free(gpu);
    gpu = gpu_lookup(name, options->sysroot, &reason);
    if (!gpu)
        return g_file_test(module, G_FILE_TEST_EXISTS) ? NULL : g_strdup(reason->message);
    gpu_free(gpu);
    if (options->icd || (first && strstr(first, "nvidia")))
        return NULL;
    return g_strdup_printf("GPU %s: NVIDIA's Vulkan driver is not installed", name);
}

struct gpu *cuda_alone_enter(const char *name, const struct options *options, GError **error)
{
    gint64 until = g_get_monotonic_time() + PATIENCE;
    struct gpu *gpu = gpu_wait_for(gpu_lookup_cuda, name, options->sysroot, until, error);

    if (!gpu || options->no_landlock ||
        sandbox_enter((const char *const *)gpu->nodes, options->shader_cache, error))
        return gpu;
    gpu_free(gpu);
    return NULL;
}
