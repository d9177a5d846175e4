/* SPDX-License-Identifier: MIT */
/* What Prometheus' text says of GPUs, and of slices and tenants. */
#ifndef VGPUD_METRICS_GPU_METRICS_H
#define VGPUD_METRICS_GPU_METRICS_H

#include "host-agent/daemon/metrics/vgpu_metrics.h"

/* @gpus: of GpuMetrics. */
void add_gpu_metrics(Exposition *exposition, const GArray *gpus, const VgpuTable *vgpus);

/* Metrics of containers' slices that are no vGPUs. */

void add_slice_metrics(Exposition *exposition, const GArray *slices);

#endif
