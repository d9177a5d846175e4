/* SPDX-License-Identifier: MIT */
/*
 * The energy of owners' slices, of GPUs whose driver has a counter of it (hwmon's energy1_input).
 * What is used while the meter does not run is nobody's.
 */
#ifndef METER_OWNER_ENERGY_H
#define METER_OWNER_ENERGY_H

#include "host-agent/meter/host_view.h"

typedef struct OwnerEnergy OwnerEnergy;

/* @view: lives longer. */
OwnerEnergy *owner_energy_new(const HostView *view);
void owner_energy_free(OwnerEnergy *energy);

/*
 * There are owners: begins to read soon, if a GPU has a counter. If it has begun already, nothing
 * is done.
 */
void owner_energy_start(OwnerEnergy *energy);

/* There are none any more. */
void owner_energy_stop(OwnerEnergy *energy);

/* A slice was made, changed or removed. */
void owner_energy_update(OwnerEnergy *energy, const char *uuid);

/* Reads all GPUs, right after counters_read(). */
void owner_energy_look(OwnerEnergy *energy);

/* Microjoules since the last call; FALSE: the slice's GPU has no counter. */
gboolean owner_energy_take(OwnerEnergy *energy, const char *uuid, guint64 *uj);

#endif
