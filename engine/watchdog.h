/* SPDX-License-Identifier: MIT */
/*
 * systemd's watchdog. A notification wakes up PID 1, so it is sent as rarely as allowed, not at
 * every turn of the loop.
 */
#ifndef ENGINE_WATCHDOG_H
#define ENGINE_WATCHDOG_H

#include <glib.h>

/* Checks whether systemd wants notifications at all (WATCHDOG_USEC). */
void watchdog_setup(void);

/* The engine is alive at @now (monotonic, microseconds). Cheap. */
void watchdog_alive(gint64 now);

/* How many ms the engine may sleep, -1 for any time. */
int watchdog_sleep(void);

#endif /* ENGINE_WATCHDOG_H */
