/* SPDX-License-Identifier: MIT */
/*
 * A scope of systemd for a program and all that it starts, by which vgpud sees when the last of
 * them has ended.
 */
#ifndef VGPUCTL_RUN_SCOPE_H
#define VGPUCTL_RUN_SCOPE_H

#include <glib.h>

/*
 * Moves this process into a scope for the slice @uuid: of the user's own manager, or for root of
 * the system's. A process whose cgroup is not systemd's own stays there: a workload manager or a
 * container runtime has put it there, and counts it there. FALSE: it stays where it is, with
 * @error if systemd was asked and said no.
 */
gboolean run_scope_enter(const char *uuid, GError **error);

#endif
