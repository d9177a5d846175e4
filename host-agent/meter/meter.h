/* SPDX-License-Identifier: MIT */
/*
 * What counts and watches, as one: health, memory pressure, programs that go round the governor,
 * use and its reports, metrics. It has no bus: what vgpud says and asks comes by meter_hear() and
 * meter_answer().
 */
#ifndef METER_METER_H
#define METER_METER_H

#include <gio/gio.h>

#include "host-agent/meter/agent_link.h"
#include "host-agent/meter/bypass_watch.h"
#include "host-agent/meter/health_watch.h"
#include "host-agent/meter/metrics_server.h"
#include "host-agent/meter/pressure_watch.h"
#include "host-agent/meter/usage_sampler.h"

typedef struct Meter Meter;

/*
 * @state: the answer of org.mdev_vgpu.Host1.Metering.Begin. @agent: copied. NULL with @error: a
 * mistake in vgpud.conf, or the database cannot be used.
 */
Meter *meter_new(HostRoot *root, const AgentLink *agent, GVariant *state, GError **error);

/* Stores what was counted. */
void meter_free(Meter *meter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Meter, meter_free)

/* vgpud has started again, with this state, and has read its settings. */
void meter_begin_again(Meter *meter, GVariant *state);

/*
 * Whether vgpud runs: it tells of each vGPU that changes, so those that no VM has open need not be
 * read again. Not so at first.
 */
void meter_set_agent_up(Meter *meter, gboolean up);

/* A signal of org.mdev_vgpu.Host1.Metering. */
void meter_hear(Meter *meter, const char *signal, GVariant *arguments);

/* Either @answer or @error. */
typedef void (*MeterReplyFunc)(GVariant *answer, const GError *error, void *data);

/* A method of org.mdev_vgpu.Host1.Meter. @func may be called before it returns, or later. */
void meter_answer(Meter *meter, const char *method, GVariant *arguments, MeterReplyFunc func,
                  void *data);

/* For tests, which have their own clock. */
const HostView *meter_view(const Meter *meter);
Health *meter_health(const Meter *meter);
PressureWatch *meter_pressure(const Meter *meter);
BypassWatch *meter_bypass(const Meter *meter);
UsageSampler *meter_usage(const Meter *meter);
Scrape *meter_scrape(const Meter *meter);

#endif
