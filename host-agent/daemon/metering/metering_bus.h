/* SPDX-License-Identifier: MIT */
/* The meter as a process of its own, reached by messages on the bus. */
#ifndef VGPUD_METERING_METERING_BUS_H
#define VGPUD_METERING_METERING_BUS_H

#include "host-agent/daemon/metering/metering.h"

typedef struct MeteringBus MeteringBus;

/* Exports @metering, which lives longer, on @bus. */
MeteringBus *metering_bus_new(Metering *metering, GDBusConnection *bus);

void metering_bus_free(MeteringBus *bus);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MeteringBus, metering_bus_free)

/* To the process that has begun last. Valid as long as @bus. */
MeterLink metering_bus_link(MeteringBus *bus);

#endif
