/* SPDX-License-Identifier: MIT */
/*
 * Calls that change the host: writes to sysfs, and other programs. Both may take as long as a
 * driver does, so never call them from the main loop. Unit tests replace them.
 */
#ifndef VGPUD_MODES_KERNEL_CALL_H
#define VGPUD_MODES_KERNEL_CALL_H

#include <gio/gio.h>

/* Writes @text to an attribute in one write(). The error is a sentence with the path:
 * AGENT_ERROR_FAILED. */
gboolean kernel_write(const char *path, const char *text, GError **error);

/*
 * Runs a program, found by PATH, and waits for it, for two minutes at most. @output: its standard
 * output and error, to be freed; may be NULL. AGENT_ERROR_FAILED if it cannot be started, if its
 * exit status is not 0 (with its message), or if it was killed because it did not end.
 */
gboolean kernel_run(const char *const *argv, char **output, GError **error);
gboolean kernel_run_within(guint seconds, const char *const *argv, char **output, GError **error);

/* Opens a device node and keeps it open; -1 with errno. */
int kernel_hold(const char *path);

#endif
