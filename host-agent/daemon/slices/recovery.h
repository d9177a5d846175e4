/* SPDX-License-Identifier: MIT */
/*
 * After a crash: goes on with what was cut short, one slice after the other. What was being made is removed, what was
 * being removed goes, what was being changed is changed. A vGPU that a VM has taken in between stays.
 */
#ifndef VGPUD_SLICES_RECOVERY_H
#define VGPUD_SLICES_RECOVERY_H

#include "host-agent/daemon/slices/slices.h"

/* Returns at once; the rest is done from the main loop. Both live longer. */
void recovery_run(Host *host, Slices *slices);

#endif
