/* SPDX-License-Identifier: MIT */
/*
 * --watch: a command that prints again whenever what it prints has changed.
 */
#ifndef VGPUCTL_WATCH_H
#define VGPUCTL_WATCH_H

#include "host-agent/vgpuctl/command.h"

/* Returns with an error only; a signal ends the process. A terminal is cleared each time. */
gboolean watch_run(const Command *command, Client *client, const Options *options, char **args,
                   GError **error);

#endif
