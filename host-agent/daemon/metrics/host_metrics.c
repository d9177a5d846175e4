/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/metrics/host_metrics.h"

#include <string.h>

#include "host-agent/daemon/metrics/exposition.h"
#include "host-agent/daemon/metrics/gpu_metrics.h"
#include "host-agent/daemon/metrics/slice_metrics.h"
#include "host-agent/daemon/metrics/vgpu_metrics.h"

static void add_agent(Exposition *exposition, const HostMetrics *host)
{
    g_autoptr(GString) labels = g_string_new(NULL);

    exposition_label(labels, "version", VGPU_VERSION);
    exposition_family(exposition, "vgpu_build_info", METRIC_GAUGE, "The version of vgpud.");
    exposition_count(exposition, labels->str, 1);
    exposition_family(exposition, "vgpu_agent_start_time_seconds", METRIC_GAUGE,
                      "When vgpud was started, in seconds since 1970.");
    exposition_count(exposition, "", (guint64)host->started);
}

char *host_metrics_text(const HostMetrics *host, gsize *length)
{
    Exposition *exposition = exposition_new();
    g_autoptr(VgpuTable) vgpus = vgpu_table_new(host);

    add_agent(exposition, host);
    add_gpu_metrics(exposition, host->gpus, vgpus);
    add_vgpu_metrics(exposition, vgpus);
    add_slice_metrics(exposition, host->slices);
    add_tenant_metrics(exposition, vgpus);
    return exposition_end(exposition, length);
}
