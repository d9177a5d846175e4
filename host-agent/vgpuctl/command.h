/* SPDX-License-Identifier: MIT */
/*
 * What `vgpuctl NOUN VERB` does. Each command prints to standard output and returns TRUE, or sets
 * @error.
 */
#ifndef VGPUCTL_COMMAND_H
#define VGPUCTL_COMMAND_H

#include <glib.h>

#include "client.h"

/**
 * Options
 * @json: print JSON in place of a table
 * @root: what stands for /, "" in production
 */
typedef struct {
    gboolean json;
    const char *root;
} Options;

/* @client: NULL for commands that need no vgpud. @args: what follows the verb, NULL terminated. */
typedef gboolean Command(const Client *client, const Options *options, char **args, GError **error);

Command gpu_list_command;
Command gpu_show_command;
Command vgpu_list_command;
Command vgpu_show_command;
Command type_list_command;
Command topo_command;
Command events_command;
Command doctor_command;

#endif
