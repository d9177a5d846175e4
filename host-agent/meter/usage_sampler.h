/* SPDX-License-Identifier: MIT */
/*
 * Records promises and usage of each slice, and reports them by the month. It samples once a
 * minute while a GPU is used. While none is, it only stores the time, every quarter of an hour.
 */
#ifndef METER_USAGE_SAMPLER_H
#define METER_USAGE_SAMPLER_H

#include <gio/gio.h>

#include "host-agent/meter/agent_link.h"
#include "host-agent/meter/host_view.h"

typedef struct UsageSampler UsageSampler;

/* Both live longer. */
UsageSampler *usage_sampler_new(HostView *view, const AgentLink *agent);

/* Stores the samples that were not stored yet. */
void usage_sampler_free(UsageSampler *sampler);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UsageSampler, usage_sampler_free)

/* vgpud has started again, or other GPUs go by what was used. */
void usage_sampler_tell_again(UsageSampler *sampler);

/* Slices may have been added or removed. */
void usage_sampler_refresh(UsageSampler *sampler);

/* Either @answer or @error. */
typedef void (*ReportFunc)(GVariant *answer, const GError *error, void *data);

/*
 * What @tenant ("": all) had and used in @month (report_month()), as the method Report has it.
 * @func is called when a thread has read it, unless the sampler is freed before.
 */
void usage_sampler_report(UsageSampler *sampler, const char *tenant, const char *month,
                          ReportFunc func, void *data);

/* Takes a sample as if @seconds had passed, for tests. */
void usage_sampler_sample(UsageSampler *sampler, guint seconds);

/* What its timer does, likewise. */
void usage_sampler_tick(UsageSampler *sampler, guint seconds);

/* There are no samples until somebody uses a GPU, for tests. */
gboolean usage_sampler_rests(const UsageSampler *sampler);

#endif
