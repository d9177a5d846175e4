/* SPDX-License-Identifier: MIT */
/*
 * Takes down what each slice has and uses, once a minute while there are slices, and answers the
 * manager's Report.
 */
#ifndef VGPUD_METRICS_USAGE_SAMPLER_H
#define VGPUD_METRICS_USAGE_SAMPLER_H

#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

typedef struct UsageSampler UsageSampler;

/* All of them live longer. */
UsageSampler *usage_sampler_new(Host *host, Offers *offers, const Slices *slices,
                                const Tenants *tenants);

/* Stores what was not stored yet. */
void usage_sampler_free(UsageSampler *sampler);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UsageSampler, usage_sampler_free)

/* Slices may have come or gone. */
void usage_sampler_refresh(UsageSampler *sampler);

/* Takes a sample as if @seconds had gone by, for tests. */
void usage_sampler_sample(UsageSampler *sampler, guint seconds);

#endif
