/* SPDX-License-Identifier: MIT */
/*
 * Ends this process by SIGKILL at a chosen point, counted from 0: just before a write to the
 * watched page, or at a call of kill_point(). The page is write-protected, so that no write to it
 * is missed; each is then made as a single step.
 */
#ifndef GOVERNOR_KILL_POINT_H
#define GOVERNOR_KILL_POINT_H

#include <stdbool.h>
#include <stddef.h>

/* False if the processor cannot execute a single step from here. */
bool kill_point_supported(void);

#define KILL_POINT_NEVER (-1)

/* Counts from 0 again; dies at @number. */
void kill_point_arm(long number);

void kill_point(void);

/* Write-protects @page; it may move. NULL: none. */
void kill_point_watch(void *page, size_t bytes);
void *kill_point_watched(void);

#endif
