/* SPDX-License-Identifier: MIT */
/*
 * One vgpud for each host: a second one would finish, or undo, the first one's current operations.
 */
#ifndef VGPUD_INSTANCE_H
#define VGPUD_INSTANCE_H

#include <glib.h>

#include "lib/host_root.h"

/*
 * A file descriptor that prevents others until it is closed or the process ends; -1 with
 * AGENT_ERROR_IN_USE if another vgpud runs, AGENT_ERROR_FAILED if the lock fails otherwise.
 */
int instance_lock(HostRoot *root, GError **error);

#endif
