// SPDX-License-Identifier: MIT
#include "vulkan_driver.h"

#include "sandbox.h"

/* At boot a GPU appears before the program that makes its nodes. */
#define NODE_TIMEOUT (30 * G_TIME_SPAN_SECOND)

char *vulkan_driver_enter(const struct gpu *gpu, const struct options *options,
                          struct icd_report *report, GError **error)
{
    g_auto(GStrv) manifests = NULL;

    if (!gpu_wait_for_nodes(gpu, options->sysroot, NODE_TIMEOUT, error))
        return NULL;
    if (!options->no_landlock &&
        !sandbox_enter((const char *const *)gpu->nodes, options->shader_cache, error))
        return NULL;
    if (options->icd) {
        const char *const only[] = {options->icd, NULL};

        return icd_choose(gpu, only, report, error);
    }
    manifests = icd_list(options->sysroot, gpu->icd_hint);
    return icd_choose(gpu, (const char *const *)manifests, report, error);
}
