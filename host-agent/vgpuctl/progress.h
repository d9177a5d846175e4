/* SPDX-License-Identifier: MIT */
/*
 * A line on a terminal's standard error about what takes longer than two seconds: what it is, how
 * long it has taken, and how long it can still take. If standard error is no terminal there is
 * none.
 */
#ifndef VGPUCTL_PROGRESS_H
#define VGPUCTL_PROGRESS_H

#include <glib.h>

/**
 * progress_begin() - something begins
 * @what: as "removing vGPU red"
 * @limit: seconds after which it is given up; 0: it has no limit
 *
 * The line is kept up to date by the main loop. A second one within another shows the inner.
 */
void progress_begin(const char *what, guint limit);

/* @done of @all parts are done, from which the time left is estimated. */
void progress_parts(guint done, guint all);

/* Takes the line away, before something else is printed. It comes back. */
void progress_hide(void);

void progress_end(void);

/* Sleeps, while the line is kept up to date. */
void progress_sleep(gint64 microseconds);

#endif
