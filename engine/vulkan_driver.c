// SPDX-License-Identifier: MIT
#include "vulkan_driver.h"

#include "sandbox.h"

char *vulkan_driver_enter(const struct gpu *gpu, const struct options *options, struct icd_report *report,
                   GError **error)
{
    g_auto(GStrv) manifests = NULL;

    if (!options->no_landlock && !sandbox_enter((const char *const *)gpu->nodes, error))
        return NULL;
    if (options->icd) {
        const char *const only[] = {options->icd, NULL};

        return icd_choose(gpu, only, report, error);
    }
    manifests = icd_list(options->sysroot, gpu->icd_hint);
    return icd_choose(gpu, (const char *const *)manifests, report, error);
}
