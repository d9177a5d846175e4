/* SPDX-License-Identifier: MIT */
/* Metrics of vGPUs, and sums of vGPUs and containers' slices by GPU and by tenant. */
#ifndef VGPUD_METRICS_VGPU_METRICS_H
#define VGPUD_METRICS_VGPU_METRICS_H

#include "host-agent/daemon/metrics/exposition.h"
#include "host-agent/daemon/metrics/host_metrics.h"

/**
 * Share - promises to a tenant, or of a GPU
 */
typedef struct {
    guint vgpus;
    guint64 vram;
    guint compute;
} Share;

typedef struct VgpuTable VgpuTable;

/* @host: lives longer. */
VgpuTable *vgpu_table_new(const HostMetrics *host);

void vgpu_table_free(VgpuTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VgpuTable, vgpu_table_free)

/* The promised part of the GPU at @address. */
Share vgpu_table_of_gpu(const VgpuTable *table, const char *address);

void add_vgpu_metrics(Exposition *exposition, const VgpuTable *table);
void add_tenant_metrics(Exposition *exposition, const VgpuTable *table);

#endif
