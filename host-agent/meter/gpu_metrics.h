/* SPDX-License-Identifier: MIT */
/* What Prometheus' text says of GPUs, and of slices and tenants. */
#ifndef METER_GPU_METRICS_H
#define METER_GPU_METRICS_H

#include "host-agent/meter/vgpu_metrics.h"

/* @gpus: of GpuMetrics. */
void add_gpu_metrics(Exposition *exposition, const GArray *gpus, const VgpuTable *vgpus);

/* Metrics of containers' slices that are no vGPUs. */

void add_slice_metrics(Exposition *exposition, const GArray *slices);

#endif
