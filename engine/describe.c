// SPDX-License-Identifier: MIT
#include "describe.h"

#include "cuda_alone.h"
#include "sandbox.h"
#include "vulkan_driver.h"

#include <stdio.h>
#include <vulkan/vulkan_core.h>

#define GROUP "vulkan"

static void set_features(GKeyFile *keyfile, const struct icd_report *report)
{
    const struct {
        bool there;
        const char *name;
    } features[] = {
        {report->fp16, "fp16"},
        {report->fp64, "fp64"},
        {report->int64, "int64"},
        {report->timeline, "timeline-semaphores"},
    };
    const char *names[G_N_ELEMENTS(features)];
    gsize count = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(features); i++)
        if (features[i].there)
            names[count++] = features[i].name;
    g_key_file_set_string_list(keyfile, GROUP, "features", names, count);
}

char *describe_report(const char *manifest, const struct icd_report *report)
{
    g_autoptr(GKeyFile) keyfile = g_key_file_new();
    g_autofree char *driver = g_path_get_basename(manifest);
    g_autofree char *api = g_strdup_printf("%u.%u.%u", VK_API_VERSION_MAJOR(report->api_version),
                                           VK_API_VERSION_MINOR(report->api_version),
                                           VK_API_VERSION_PATCH(report->api_version));

    g_key_file_set_string(keyfile, GROUP, "device", report->name);
    g_key_file_set_string(keyfile, GROUP, "driver", driver);
    g_key_file_set_string(keyfile, GROUP, "api", api);
    g_key_file_set_boolean(keyfile, GROUP, "exports-memory", report->dma_buf);
    g_key_file_set_integer(keyfile, GROUP, "compute-queues", (gint)report->compute_queues);
    g_key_file_set_integer(keyfile, GROUP, "graphics-queues", (gint)report->graphics_queues);
    set_features(keyfile, report);
    return g_key_file_to_data(keyfile, NULL, NULL);
}

char *describe_missing(const char *why)
{
    g_autoptr(GKeyFile) keyfile = g_key_file_new();

    g_key_file_set_string(keyfile, GROUP, "missing", why);
    return g_key_file_to_data(keyfile, NULL, NULL);
}

bool describe_gpu(const struct options *options, GError **error)
{
    g_autofree char *no_vulkan = cuda_alone_why(options->describe, options);
    struct vulkan_driver driver;
    bool ok;

    if (no_vulkan) {
        g_autofree char *text = describe_missing(no_vulkan);

        return fputs(text, stdout) >= 0;
    }
    sandbox_clean_environment((const char *const *)options->environment);
    ok = vulkan_driver_enter(&driver, options->describe, options, error);
    if (ok) {
        g_autofree char *text = describe_report(driver.manifest, &driver.report);

        fputs(text, stdout);
    }
    vulkan_driver_clear(&driver);
    return ok;
}
