/* SPDX-License-Identifier: MIT */
/*
 * Calls that change the host: writes to sysfs, VFIO's groups held open, and other programs. All may
 * take as long as a driver does, so never call them from the main loop. Unit tests replace them.
 */
#ifndef VGPUD_MODES_KERNEL_CALL_H
#define VGPUD_MODES_KERNEL_CALL_H

#include <gio/gio.h>

#include "lib/host_root.h"

/* Writes @text to an attribute in one write(). The error is a sentence with the path:
 * AGENT_ERROR_FAILED. */
gboolean kernel_write(HostRoot *root, const char *path, const char *text, GError **error);

/*
 * Runs a program, found by PATH, and waits for it, for two minutes at most. @output: its standard
 * output, to be freed; may be NULL. AGENT_ERROR_FAILED if it cannot be started, if its exit status
 * is not 0 (with its message), or if it was killed because it did not end.
 */
gboolean kernel_run(const char *const *argv, char **output, GError **error);

/* Opens the node of a VFIO group and keeps it open; -1 with errno. */
int kernel_hold(HostRoot *root, const char *path);

#endif
