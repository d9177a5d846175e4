/* SPDX-License-Identifier: MIT */
/*
 * A vGPU's parameters being changed: in the database, the driver and mdevctl's configuration, or in none.
 */
#ifndef VGPUD_SLICES_ALTERATION_H
#define VGPUD_SLICES_ALTERATION_H

#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/daemon/slices/slices.h"

/*
 * @wanted: the slice as it shall be, taken. Calls @func when it is so, or when all is as it was. Where vgpud ends in
 * between, the next start goes on by calling this again with the slice as it was stored.
 */
void alteration_run(Host *host, Slices *slices, Slice *wanted, MdevctlFunc func, void *data);

#endif
