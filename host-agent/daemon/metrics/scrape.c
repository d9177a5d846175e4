/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/metrics/scrape.h"

#include "host-agent/daemon/engines/counters.h"
#include "host-agent/daemon/metrics/exposition.h"
#include "host-agent/daemon/metrics/gpu_metrics.h"
#include "host-agent/daemon/metrics/host_metrics.h"
#include "host-agent/daemon/metrics/metrics_server.h"
#include "host-agent/daemon/metrics/slice_metrics.h"
#include "host-agent/daemon/metrics/vgpu_metrics.h"

struct Scrape {
    gint64 started;
    Host *host;
    Offers *offers;
    const Slices *slices;
    const Health *health;
    const PressureWatch *pressure;
    const Claims *claims;
    MetricsServer *server;
    char *listen;
};

static const Slice *slice_of(const char *uuid, void *data)
{
    const Scrape *scrape = data;

    return slices_find(scrape->slices, uuid);
}

static GpuMetrics gpu_metrics(const Scrape *scrape, const Gpu *gpu, const GPtrArray *vgpus)
{
    GpuMetrics metrics = {.gpu = gpu};

    gpu_readings_read(host_root(scrape->host), gpu->pci, &metrics.readings);
    metrics.capacity = offers_capacity(scrape->offers, gpu, &metrics.vram);
    metrics.vram_used_known =
        gpu_vram_used(host_root(scrape->host), gpu->pci, vgpus, &metrics.vram_used);
    metrics.mark = pressure_watch_mark(scrape->pressure, gpu);
    metrics.healthy = health_is_good(scrape->health, gpu->pci->address);
    return metrics;
}

/* Of SliceMetrics, after the counters were read. */
static GArray *slice_metrics(const Scrape *scrape)
{
    const GPtrArray *slices = slices_all(scrape->slices);
    GArray *list = g_array_new(FALSE, FALSE, sizeof(SliceMetrics));

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const SliceMetrics metrics = {slice, counters_use(host_counters(scrape->host), slice->uuid),
                                      claims_container(scrape->claims, slice->uuid)};

        if (!slice_is_vgpu(slice))
            g_array_append_val(list, metrics);
    }
    return list;
}

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

static char *text_of(const HostMetrics *host, gsize *length)
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

char *scrape_text(Scrape *scrape, gsize *length)
{
    const GPtrArray *gpus = host_gpus(scrape->host);
    g_autoptr(GArray) metrics = g_array_new(FALSE, FALSE, sizeof(GpuMetrics));
    HostMetrics host = {
        .started = scrape->started,
        .gpus = metrics,
        .vgpus = counters_read(host_counters(scrape->host)),
        .slice = slice_of,
        .data = scrape,
    };
    g_autoptr(GArray) containers = slice_metrics(scrape);

    host.slices = containers;
    for (guint i = 0; i < gpus->len; i++) {
        const GpuMetrics gpu = gpu_metrics(scrape, g_ptr_array_index(gpus, i), host.vgpus);

        g_array_append_val(metrics, gpu);
    }
    return text_of(&host, length);
}

static char *answer(void *data, gsize *length)
{
    return scrape_text(data, length);
}

Scrape *scrape_new(Host *host, Offers *offers, const Slices *slices, const Health *health,
                   const PressureWatch *pressure, const Claims *claims)
{
    Scrape *scrape = g_new0(Scrape, 1);

    scrape->started = g_get_real_time() / G_USEC_PER_SEC;
    scrape->host = host;
    scrape->offers = offers;
    scrape->slices = slices;
    scrape->health = health;
    scrape->pressure = pressure;
    scrape->claims = claims;
    return scrape;
}

gboolean scrape_listen(Scrape *scrape, const char *listen, GError **error)
{
    if (scrape->server && g_strcmp0(scrape->listen, listen) == 0)
        return TRUE;
    g_clear_pointer(&scrape->server, metrics_server_free);
    g_free(scrape->listen);
    scrape->listen = g_strdup(listen);
    if (listen)
        scrape->server = metrics_server_new(host_root(scrape->host), listen, answer, scrape, error);
    return !listen || scrape->server;
}

void scrape_free(Scrape *scrape)
{
    g_clear_pointer(&scrape->server, metrics_server_free);
    g_free(scrape->listen);
    g_free(scrape);
}
