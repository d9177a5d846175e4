// SPDX-License-Identifier: MIT
#include "vulkan_driver.h"

#include "sandbox.h"

/* A VMM that opens the vGPU waits 30 s for its engine. It shall get the reason before. */
#define PATIENCE       (25 * G_TIME_SPAN_SECOND)
#define PROBE_INTERVAL (500 * G_TIME_SPAN_MILLISECOND)

static GStrv list_manifests(const struct gpu *gpu, const struct options *options)
{
    const char *const only[] = {options->icd, NULL};

    return options->icd ? g_strdupv((char **)only) : icd_list(options->sysroot, gpu->icd_hint);
}

static bool probe_drivers(struct vulkan_driver *driver, const struct options *options, gint64 until,
                          GError **error)
{
    for (bool said = false;; said = true) {
        g_auto(GStrv) manifests = list_manifests(driver->gpu, options);
        g_autoptr(GError) reason = NULL;

        driver->manifest =
            icd_choose(driver->gpu, (const char *const *)manifests, &driver->report, &reason);
        if (driver->manifest)
            return true;
        if (g_get_monotonic_time() >= until) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return false;
        }
        if (!said)
            g_message("waiting: %s", reason->message);
        g_usleep(PROBE_INTERVAL);
    }
}

bool vulkan_driver_enter(struct vulkan_driver *driver, const char *name,
                         const struct options *options, GError **error)
{
    gint64 until = g_get_monotonic_time() + PATIENCE;

    *driver = (struct vulkan_driver){0};
    driver->gpu = gpu_wait_for(gpu_lookup, name, options->sysroot, until, error);
    if (!driver->gpu)
        return false;
    /*
     * What vgpu-describe has found holds while the manifests are the same. The sandbox hides its
     * file. Without a sandbox the driver could show other GPUs meanwhile, and whoever describes a
     * GPU does not repeat what it said before.
     */
    if (!options->no_landlock && !options->describe && !options->icd)
        driver->manifest = icd_known(options->sysroot, driver->gpu, &driver->report);
    driver->known = driver->manifest != NULL;
    if (!options->no_landlock &&
        !sandbox_enter((const char *const *)driver->gpu->nodes, options->shader_cache, error))
        return false;
    return driver->known || probe_drivers(driver, options, until, error);
}

void vulkan_driver_clear(struct vulkan_driver *driver)
{
    gpu_free(driver->gpu);
    g_free(driver->manifest);
}
