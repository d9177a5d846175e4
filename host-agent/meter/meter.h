/* SPDX-License-Identifier: MIT */
/*
 * What counts and watches, as one: health, memory pressure, programs that go round the governor,
 * use and its reports, metrics.
 */
#ifndef METER_METER_H
#define METER_METER_H

#include "host-agent/daemon/slices/owner_uses.h"
#include "host-agent/meter/bypass_watch.h"
#include "host-agent/meter/health_watch.h"
#include "host-agent/meter/metrics_server.h"
#include "host-agent/meter/pressure_watch.h"
#include "host-agent/meter/usage_sampler.h"

typedef struct Meter Meter;

/**
 * Metered - what is counted and watched. All of it lives longer
 */
typedef struct {
    Host *host;
    Offers *offers;
    const Slices *slices;
    const Tenants *tenants;
    const Claims *claims;
    ArbiterReports *reports;
} Metered;

/* Counters of use are complete from here on (arbiter_reports_complete()). NULL with @error. */
Meter *meter_new(const Metered *metered, const VgpudConf *conf, GError **error);

/* Stores what was counted. */
void meter_free(Meter *meter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Meter, meter_free)

/* For vgpud's methods. Valid as long as @meter. */
OwnerUses meter_owner_uses(const Meter *meter);

/* The settings are these from now on. */
void meter_configure(Meter *meter, const VgpudConf *conf);

/* Begins to watch: @bus has systemd. */
void meter_start(Meter *meter, GDBusConnection *bus);

/* GPUs, their settings, or any slices may have changed. */
void meter_refresh(Meter *meter);

/* A slice was added, changed or removed. */
void meter_slice_changed(Meter *meter, const char *uuid);

/* A slice's users have changed. */
void meter_users_changed(Meter *meter);

/* The driver reports that the vGPU has changed or was removed. */
void meter_vgpu_changed(Meter *meter, const char *uuid);

/* Some of those reports may be missing. */
void meter_events_lost(Meter *meter);

/* For tests, which have their own clock. */
Health *meter_health(const Meter *meter);
PressureWatch *meter_pressure(const Meter *meter);
BypassWatch *meter_bypass(const Meter *meter);
UsageSampler *meter_usage(const Meter *meter);
Scrape *meter_scrape(const Meter *meter);

#endif
