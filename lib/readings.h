/* SPDX-License-Identifier: MIT */
/* Reads a GPU's sensors and error counters. */
#ifndef LIB_READINGS_H
#define LIB_READINGS_H

#include <glib.h>

#include "lib/gpu_readings.h"
#include "lib/host_root.h"
#include "lib/pci.h"

/* Reads all of it now. */
void gpu_readings_read(HostRoot *root, const PciDevice *pci, GpuReadings *readings);

/*
 * Reads the energy alone; FALSE: the GPU's driver has no counter of it. @at: when the counter had
 * this value, of CLOCK_MONOTONIC in us; some are read twice a minute only.
 */
gboolean gpu_energy_read(HostRoot *root, const PciDevice *pci, guint64 *energy, gint64 *at);

/* The GPU has readings that change without an event, so it must be polled. */
gboolean gpu_readings_need_a_timer(const GpuReadings *readings);

#endif
