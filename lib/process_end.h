/* SPDX-License-Identifier: MIT */
/*
 * Kills processes of others, by vgpu-suspend in a unit of its own: vgpud and vgpu-meter have no
 * right to. A process is named by its pid and the time at which it began, so that no other one that
 * has the pid by then is killed.
 */
#ifndef LIB_PROCESS_END_H
#define LIB_PROCESS_END_H

#include "lib/program.h"

/* For process_end(), to be freed. @started: of /proc/PID/stat. */
char *process_end_name(guint pid, guint64 started);

/*
 * @processes: names, up to NULL. Those that have ended are no error. @cancellable, @func: as of
 * program_start().
 */
void process_end(const char *const *processes, GCancellable *cancellable, ProgramFunc func,
                 void *data);

#endif
