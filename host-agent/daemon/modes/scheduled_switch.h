/* SPDX-License-Identifier: MIT */
/* Mode switches of the schedule whose time has come. */
#ifndef VGPUD_MODES_SCHEDULED_SWITCH_H
#define VGPUD_MODES_SCHEDULED_SWITCH_H

#include "host-agent/daemon/modes/modes.h"
#include "lib/schedule_conf.h"

typedef struct ScheduledSwitches ScheduledSwitches;

/* Both live longer. */
ScheduledSwitches *scheduled_switches_new(Host *host, Modes *modes);

void scheduled_switches_free(ScheduledSwitches *switches);

/*
 * Begins the switch; if another one of the GPU is under way, after that. An earlier one of the
 * schedule that still waits for the GPU is skipped. @when: the entry was due, seconds since 1970
 */
void scheduled_switches_add(ScheduledSwitches *switches, const ScheduleEntry *entry, gint64 when);

/* When the last entry of the GPU was due that was executed, or is being executed; 0: none. */
gint64 scheduled_switches_last(const ScheduledSwitches *switches, const char *gpu);

#endif
