/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/meter.h"

#include "host-agent/meter/alone_time.h"
#include "host-agent/meter/owners.h"

/**
 * Meter
 * @started: before, only what owners use is followed
 */
struct Meter {
    Metered metered;
    AloneTime *alone;
    Owners *owners;
    Health *health;
    PressureWatch *pressure;
    BypassWatch *bypass;
    UsageSampler *usage;
    Scrape *scrape;
    gboolean started;
};

/* An arbiter may still report a slice that has just been removed. */
static void add_alone_time(const ReportedSlice *slice, SliceUse *use, void *data)
{
    const Meter *meter = data;

    if (slices_find(meter->metered.slices, slice->uuid))
        alone_time_add(meter->alone, slice, use);
}

/* A busy port must not stop vgpud. */
static void offer_metrics(Meter *meter, const char *listen)
{
    g_autoptr(GError) error = NULL;

    if (!scrape_listen(meter->scrape, listen, &error))
        g_message("%s", error->message);
}

Meter *meter_new(const Metered *metered, const VgpudConf *conf, GError **error)
{
    g_autoptr(Meter) meter = g_new0(Meter, 1);
    Host *host = metered->host;
    const Slices *slices = metered->slices;

    meter->metered = *metered;
    meter->alone = alone_time_new(host_root(host));
    arbiter_reports_complete(metered->reports, add_alone_time, meter);
    meter->owners = owners_new(host, slices, error);
    if (!meter->owners)
        return NULL;
    meter->health = health_new(host, slices);
    meter->pressure = pressure_watch_new(host, metered->offers, slices, conf->pressure_grace);
    meter->bypass =
        bypass_watch_new(host, slices, metered->claims, metered->reports, conf->on_bypass);
    meter->usage = usage_sampler_new(host, metered->offers, slices, metered->tenants);
    meter->scrape = scrape_new(host, metered->offers, slices, meter->health, meter->pressure,
                               meter->bypass, metered->claims, meter->owners);
    offer_metrics(meter, conf->metrics_listen);
    return g_steal_pointer(&meter);
}

void meter_free(Meter *meter)
{
    g_clear_pointer(&meter->scrape, scrape_free);
    g_clear_pointer(&meter->usage, usage_sampler_free);
    g_clear_pointer(&meter->bypass, bypass_watch_free);
    g_clear_pointer(&meter->pressure, pressure_watch_free);
    g_clear_pointer(&meter->health, health_free);
    g_clear_pointer(&meter->owners, owners_free);
    arbiter_reports_complete(meter->metered.reports, NULL, NULL);
    alone_time_free(meter->alone);
    g_free(meter);
}

OwnerUses meter_owner_uses(const Meter *meter)
{
    return owners_uses(meter->owners);
}

void meter_configure(Meter *meter, const VgpudConf *conf)
{
    pressure_watch_set_grace(meter->pressure, conf->pressure_grace);
    bypass_watch_set_policy(meter->bypass, conf->on_bypass);
    offer_metrics(meter, conf->metrics_listen);
}

void meter_start(Meter *meter, GDBusConnection *bus)
{
    meter->started = TRUE;
    pressure_watch_connect(meter->pressure, bus);
    meter_refresh(meter);
    owners_sample(meter->owners);
}

void meter_refresh(Meter *meter)
{
    if (!meter->started)
        return;
    pressure_watch_refresh(meter->pressure);
    usage_sampler_refresh(meter->usage);
    bypass_watch_refresh(meter->bypass);
}

void meter_slice_changed(Meter *meter, const char *uuid)
{
    if (!slices_find(meter->metered.slices, uuid))
        alone_time_forget(meter->alone, uuid);
    owners_update(meter->owners, uuid);
    meter_refresh(meter);
}

void meter_users_changed(Meter *meter)
{
    if (meter->started)
        bypass_watch_refresh(meter->bypass);
}

void meter_vgpu_changed(Meter *meter, const char *uuid)
{
    health_vgpu_changed(meter->health, uuid);
    meter_refresh(meter);
}

void meter_events_lost(Meter *meter)
{
    health_events_lost(meter->health);
}

Health *meter_health(const Meter *meter)
{
    return meter->health;
}

PressureWatch *meter_pressure(const Meter *meter)
{
    return meter->pressure;
}

BypassWatch *meter_bypass(const Meter *meter)
{
    return meter->bypass;
}

UsageSampler *meter_usage(const Meter *meter)
{
    return meter->usage;
}

Scrape *meter_scrape(const Meter *meter)
{
    return meter->scrape;
}
