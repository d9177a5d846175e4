/* SPDX-License-Identifier: MIT */
/*
 * vgpud on the bus, for its meter: the meter begins when vgpud is there, and goes on without it.
 */
#ifndef METER_AGENT_BUS_H
#define METER_AGENT_BUS_H

#include <gio/gio.h>

#include "lib/host_root.h"

typedef struct AgentBus AgentBus;

/* @failed: called when the meter cannot begin, with the reason. @root: lives longer. */
AgentBus *agent_bus_new(HostRoot *root, GDBusConnection *bus,
                        void (*failed)(const char *why, void *data), void *data);

/* Stores what was counted. */
void agent_bus_free(AgentBus *agent);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AgentBus, agent_bus_free)

#endif
