/* SPDX-License-Identifier: MIT */
/*
 * The operator's command against a want of memory (pressure-command= in gpus.conf).
 */
#ifndef VGPUD_PRESSURE_COMMAND_H
#define VGPUD_PRESSURE_COMMAND_H

#include <glib.h>

/*
 * Starts @command, with GPU (an address), FREE and MARK (bytes) and VGPUS (UUIDs of those that are
 * stopped next, separated by blanks) in its environment. One that takes longer than
 * PRESSURE_COMMAND_S is killed. How it ended is in the log.
 */
void pressure_command_run(const char *command, const char *gpu, guint64 free, guint64 mark,
                          char *const *vgpus);

#define PRESSURE_COMMAND_S 60

#endif
