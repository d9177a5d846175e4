/* SPDX-License-Identifier: MIT */
/*
 * systemd's watchdog. Telling it is a message that wakes up PID 1, so it is told as seldom as it
 * allows, not at every turn of the loop.
 */
#ifndef ENGINE_WATCHDOG_H
#define ENGINE_WATCHDOG_H

#include <glib.h>

/* Looks whether systemd wants one at all (WATCHDOG_USEC). */
void watchdog_setup(void);

/* The engine is alive at @now (monotonic, microseconds). Cheap. */
void watchdog_alive(gint64 now);

/* How many ms the engine may sleep, -1 for any time. */
int watchdog_sleep(void);

#endif /* ENGINE_WATCHDOG_H */
