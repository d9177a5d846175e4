/* SPDX-License-Identifier: MIT */
/* What Prometheus' text says of owners: engines' jobs. */
#ifndef METER_JOB_METRICS_H
#define METER_JOB_METRICS_H

#include "host-agent/meter/vgpu_metrics.h"
#include "host-agent/meter/owners.h"

/* More owners without slices are left out, so that short jobs make no thousands of time series. */
#define JOB_METRICS_ENDED 256

/* @owners: of OwnerTotals, as owners_list() has it. */
void add_job_metrics(Exposition *exposition, const GPtrArray *owners);

#endif
