/* SPDX-License-Identifier: MIT */
/*
 * Records promises and usage of each slice, and answers the manager's Report. It samples once a
 * minute while a GPU is used. While none is, it only stores the time, every quarter of an hour.
 */
#ifndef METER_USAGE_SAMPLER_H
#define METER_USAGE_SAMPLER_H

#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

typedef struct UsageSampler UsageSampler;

/* All of them live longer. */
UsageSampler *usage_sampler_new(Host *host, Offers *offers, const Slices *slices,
                                const Tenants *tenants);

/* Stores the samples that were not stored yet. */
void usage_sampler_free(UsageSampler *sampler);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UsageSampler, usage_sampler_free)

/* Slices may have been added or removed. */
void usage_sampler_refresh(UsageSampler *sampler);

/* Takes a sample as if @seconds had passed, for tests. */
void usage_sampler_sample(UsageSampler *sampler, guint seconds);

/* What its timer does, likewise. */
void usage_sampler_tick(UsageSampler *sampler, guint seconds);

/* There are no samples until somebody uses a GPU, for tests. */
gboolean usage_sampler_rests(const UsageSampler *sampler);

#endif
