/* SPDX-License-Identifier: MIT */
/*
 * Metrics of physical GPUs.
 */
#ifndef METRICS_GPU_METRICS_H
#define METRICS_GPU_METRICS_H

#include "host-agent/daemon/metrics/vgpu_metrics.h"

/* @gpus: of GpuMetrics. */
void add_gpu_metrics(Exposition *exposition, const GArray *gpus, const VgpuTable *vgpus);

#endif
