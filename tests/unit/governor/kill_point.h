/* SPDX-License-Identifier: MIT */
/*
 * Ends this process by SIGKILL at a chosen point, counted from 0: just before a write to the page
 * that it has been given to watch, or where kill_point() is called. The page is kept unwritable, so
 * that no write to it goes unseen; each is then made as a single step.
 */
#ifndef GOVERNOR_KILL_POINT_H
#define GOVERNOR_KILL_POINT_H

#include <stdbool.h>
#include <stddef.h>

/* False where the processor cannot be made to take a single step from here. */
bool kill_point_supported(void);

#define KILL_POINT_NEVER (-1)

/* Counts from 0 again; dies at @number. */
void kill_point_arm(long number);

void kill_point(void);

/* @page can't be written now; it may move. NULL: none. */
void kill_point_watch(void *page, size_t bytes);
void *kill_point_watched(void);

#endif
