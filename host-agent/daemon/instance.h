/* SPDX-License-Identifier: MIT */
/*
 * One vgpud for each host: a second one would finish, or undo, what the first is just doing.
 */
#ifndef VGPUD_INSTANCE_H
#define VGPUD_INSTANCE_H

#include <glib.h>

/*
 * A file descriptor that keeps others out until it is closed, or the process ends; -1 with
 * AGENT_ERROR_IN_USE where another vgpud runs, AGENT_ERROR_FAILED where the lock can't be had.
 */
int instance_lock(const char *root, GError **error);

#endif
