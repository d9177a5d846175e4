/* SPDX-License-Identifier: MIT */
/*
 * What `vgpuctl NOUN VERB` does. Each command prints to standard output and returns TRUE, or sets
 * @error.
 */
#ifndef VGPUCTL_COMMAND_H
#define VGPUCTL_COMMAND_H

#include <glib.h>

#include "host-agent/vgpuctl/client.h"

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
typedef gboolean Command(Client *client, const Options *options, char **args, GError **error);

Command gpu_list_command;
Command gpu_show_command;
Command gpu_mode_command;
Command gpu_drain_command;
Command gpu_resume_command;
Command gpu_users_command;
Command gpu_clear_command;
Command vgpu_list_command;
Command vgpu_show_command;
Command vgpu_create_command;
Command vgpu_set_command;
Command vgpu_remove_command;
Command slice_list_command;
Command slice_show_command;
Command slice_create_command;
Command slice_set_command;
Command slice_remove_command;
Command cdi_list_command;
Command cdi_generate_command;
Command domain_prepare_command;
Command attach_command;
Command detach_command;
Command type_list_command;
Command tenant_list_command;
Command tenant_set_command;
Command tenant_remove_command;
Command schedule_list_command;
Command topo_command;
Command top_command;
Command report_command;
Command events_command;
Command reload_command;
Command doctor_command;
extern const GOptionEntry doctor_options[];

/* Options of single commands, which write to variables of the command's file. */
extern const GOptionEntry gpu_mode_options[];
extern const GOptionEntry vgpu_create_options[];
extern const GOptionEntry vgpu_set_options[];
extern const GOptionEntry vgpu_remove_options[];
extern const GOptionEntry slice_create_options[];
extern const GOptionEntry slice_remove_options[];
extern const GOptionEntry cdi_generate_options[];
extern const GOptionEntry vgpu_for_domain_options[];
extern const GOptionEntry detach_options[];
extern const GOptionEntry tenant_set_options[];
extern const GOptionEntry top_options[];
extern const GOptionEntry report_options[];

#endif
