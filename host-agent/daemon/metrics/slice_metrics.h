/* SPDX-License-Identifier: MIT */
/*
 * Metrics of containers' slices that are no vGPUs.
 */
#ifndef METRICS_SLICE_METRICS_H
#define METRICS_SLICE_METRICS_H

#include "host-agent/daemon/metrics/exposition.h"
#include "host-agent/daemon/metrics/host_metrics.h"

void add_slice_metrics(Exposition *exposition, const GArray *slices);

#endif
