/* SPDX-License-Identifier: MIT */
/* vgpud without its process environment: the host on the bus, and the modules that act on it. */
#ifndef VGPUD_AGENT_H
#define VGPUD_AGENT_H

#include <glib.h>

#include "lib/host_root.h"
#include "host-agent/daemon/domains/domains.h"
#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/metering/metering.h"
#include "host-agent/daemon/operations/operation.h"
#include "host-agent/daemon/slices/tenants.h"

typedef struct Agent Agent;

Agent *agent_new(HostRoot *root, GError **error);

void agent_free(Agent *agent);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Agent, agent_free)

Host *agent_host(const Agent *agent);

Metering *agent_metering(const Agent *agent);

/* @meter: copied. Without a call there is no meter. */
void agent_set_meter(Agent *agent, const MeterLink *meter);

/* For tests, which have their own clock. */
DomainWatch *agent_domains(const Agent *agent);
Operations *agent_operations(const Agent *agent);
Slices *agent_slices(const Agent *agent);

/* For tests, which do not wait: checks whether containers with slices have ended. */
void agent_look_at_containers(Agent *agent);

/* Finishes or undoes what the end of vgpud interrupted, then shows the host on @bus. */
void agent_export(Agent *agent, GDBusConnection *bus);

/* GPUs and vGPUs may have been added, changed or removed. Does nothing before agent_export(). */
void agent_refresh(Agent *agent);

/* The same, and nothing that was read before is believed: events did not come. */
void agent_events_lost(Agent *agent);

/* The same for one vGPU, or its definition. */
void agent_update_vgpu(Agent *agent, const char *uuid);

#endif
