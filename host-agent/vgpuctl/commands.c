/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "host-agent/vgpuctl/command.h"

#define LISTS COMMAND_LISTS
#define ALONE COMMAND_ALONE

const Command commands[] = {
    {"gpu", "list", NULL, LISTS, "list the GPUs of this host", gpu_list_command, gpu_list_options},
    {"gpu", "show", "GPU...", LISTS, "show all about GPUs", gpu_show_command, NULL},
    {"gpu", "mode", "GPU MODE", 0, "switch a GPU to host, shared, passthrough or partitioned",
     gpu_mode_command, gpu_mode_options},
    {"gpu", "drain", "GPU...", 0, "put no new work on GPUs", gpu_drain_command, gpu_drain_options},
    {"gpu", "resume", "GPU...", 0, "put new work on drained GPUs again", gpu_resume_command, NULL},
    {"gpu", "users", "GPU...", LISTS, "list the VMs, containers and processes that use GPUs",
     gpu_users_command, NULL},
    {"gpu", "clear", "GPU...", 0, "declare GPUs healthy", gpu_clear_command, NULL},
    {"vgpu", "list", NULL, LISTS, "list the vGPUs of this host", vgpu_list_command,
     vgpu_list_options},
    {"vgpu", "show", "VGPU...", LISTS, "show all about vGPUs", vgpu_show_command, NULL},
    {"vgpu", "create", "TYPE", 0, "create vGPUs on a GPU that has room", vgpu_create_command,
     vgpu_create_options},
    {"vgpu", "set", "VGPU...", 0, "change vGPUs, running or not", vgpu_set_command,
     vgpu_set_options},
    {"vgpu", "start", "VGPU...", 0, "start vGPUs that are defined", vgpu_start_command, NULL},
    {"vgpu", "stop", "VGPU...", 0, "stop vGPUs and keep their definitions", vgpu_stop_command,
     NULL},
    {"vgpu", "remove", "VGPU...", 0, "remove vGPUs that no VM uses", vgpu_remove_command,
     vgpu_remove_options},
    {"slice", "list", NULL, LISTS, "list the slices for containers", slice_list_command,
     slice_list_options},
    {"slice", "show", "SLICE...", LISTS, "show all about slices", slice_show_command, NULL},
    {"slice", "create", "[TYPE]", 0, "create a slice for containers", slice_create_command,
     slice_create_options},
    {"slice", "set", "SLICE...", 0, "change slices, in use or not", slice_set_command,
     vgpu_set_options},
    {"slice", "remove", "SLICE...", 0, "remove slices that no container uses", slice_remove_command,
     slice_remove_options},
    {"run", NULL, "-- PROGRAM...", ALONE, "run a program in a slice of its own", run_command,
     run_options},
    {"cdi", "list", NULL, 0, "list what containers can ask for by --device", cdi_list_command,
     NULL},
    {"cdi", "generate", NULL, 0, "print the CDI specification of these devices",
     cdi_generate_command, cdi_generate_options},
    {"domain", "prepare", "DOMAIN", 0, "give a VM a vGPU at every start", domain_prepare_command,
     vgpu_for_domain_options},
    {"attach", NULL, "DOMAIN", 0, "create a vGPU and attach it to a running VM", attach_command,
     vgpu_for_domain_options},
    {"detach", NULL, "DOMAIN [VGPU]", 0, "detach a vGPU from a running VM", detach_command,
     detach_options},
    {"type", "list", NULL, LISTS, "list the vGPU types that the GPUs offer", type_list_command,
     type_list_options},
    {"type", "show", "TYPE...", LISTS, "show all about vGPU types", type_show_command, NULL},
    {"tenant", "list", NULL, LISTS, "list the tenants, their quotas and their use",
     tenant_list_command, tenant_list_options},
    {"tenant", "show", "TENANT...", LISTS, "show all about tenants", tenant_show_command, NULL},
    {"tenant", "set", "TENANT", 0, "create a tenant, or change its quotas", tenant_set_command,
     tenant_set_options},
    {"tenant", "remove", "TENANT...", 0, "remove tenants that have no vGPU", tenant_remove_command,
     NULL},
    {"schedule", "list", NULL, LISTS, "list the mode switches that are scheduled",
     schedule_list_command, NULL},
    {"schedule", "run", "TIMER", COMMAND_HIDDEN, "execute an entry, for systemd's timer",
     schedule_run_command, NULL},
    {"operation", "list", NULL, LISTS, "list what is being done, step by step",
     operation_list_command, NULL},
    {"operation", "cancel", "ID...", 0, "undo what is being done", operation_cancel_command, NULL},
    {"config", "export", "[DIRECTORY]", 0, "write out what was set by command, as in /etc/vgpu",
     config_export_command, NULL},
    {"config", "diff", NULL, 0, "show what was set by command and /etc/vgpu does not declare",
     config_diff_command, NULL},
    {"config", "apply", NULL, 0, "go back to what /etc/vgpu declares", config_apply_command,
     config_apply_options},
    {"database", "backup", "FILE", ALONE, "write vgpud's database to a file",
     database_backup_command, NULL},
    {"database", "restore", "FILE", ALONE, "put a backup in the place of vgpud's database",
     database_restore_command, NULL},
    {"topo", NULL, NULL, 0, "show how near the GPUs are to each other", topo_command, NULL},
    {"events", NULL, NULL, 0, "follow what happens to GPUs and vGPUs", events_command, NULL},
    {"audit", NULL, NULL, ALONE | LISTS, "list the changes that were made, and by whom",
     audit_command, audit_options},
    {"top", NULL, NULL, 0, "follow what the vGPUs use, second by second", top_command, top_options},
    {"report", NULL, NULL, LISTS, "show what was promised and used in a month", report_command,
     report_options},
    {"reload", NULL, NULL, 0, "read /etc/vgpu again", reload_command, NULL},
    {"doctor", NULL, NULL, ALONE, "check this host, and say what to do", doctor_command,
     doctor_options},
    {"completion", NULL, "SHELL", ALONE, "print completions for bash, zsh or fish",
     completion_command, NULL},
    {"complete", NULL, "KIND", ALONE | COMMAND_HIDDEN, "print words for a completion",
     complete_command, NULL},
};

const guint commands_count = G_N_ELEMENTS(commands);

char *command_words(const Command *command)
{
    g_autoptr(GString) words = g_string_new(command->noun);

    if (command->verb)
        g_string_append_printf(words, " %s", command->verb);
    if (command->args)
        g_string_append_printf(words, " %s", command->args);
    return g_string_free(g_steal_pointer(&words), FALSE);
}

const Command *command_find(const char *noun, const char *verb)
{
    for (guint i = 0; noun && i < commands_count; i++) {
        const Command *command = &commands[i];

        if (g_str_equal(command->noun, noun) &&
            (!command->verb || g_strcmp0(command->verb, verb) == 0))
            return command;
    }
    return NULL;
}

gboolean command_takes(const Command *command, guint count)
{
    g_auto(GStrv) args = g_strsplit(command->args ? command->args : "", " ", -1);
    guint most = g_strv_length(args);
    guint least;

    if (!command->args)
        return count == 0;
    /* It is no argument, but ends the options. */
    least = most - g_str_equal(args[0], "--");
    if (*args[most - 1] == '[')
        least--;
    if (g_str_has_suffix(args[most - 1], "..."))
        most = G_MAXUINT;
    return count >= least && count <= most;
}
