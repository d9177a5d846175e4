/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/command.h"

#include <string.h>

#include "host-agent/vgpuctl/slice_options.h"

#define LISTS COMMAND_LISTS
#define ALONE COMMAND_ALONE
#define NEW   COMMAND_SETS(SLICE_KEY_ASKED)
#define SET   COMMAND_SETS(SLICE_KEY_CHANGED)
#define VM    COMMAND_SETS(SLICE_KEY_VM)

const Command commands[] = {
    {"gpu", "list", NULL, LISTS, "list the GPUs of this host", gpu_list_command, gpu_list_options},
    {"gpu", "show", "GPU...", LISTS, "show all about GPUs", gpu_show_command, NULL},
    {"gpu", "mode", "GPU MODE", 0, "switch a GPU to host, shared, passthrough or partitioned",
     gpu_mode_command, gpu_mode_options},
    {"gpu", "drain", "GPU...", 0, "put no new work on GPUs", gpu_drain_command, gpu_drain_options},
    {"gpu", "resume", "GPU...", 0, "put new work on drained GPUs again", gpu_resume_command, NULL},
    {"gpu", "users", "[GPU...]", LISTS, "list the VMs, containers and processes that use GPUs",
     gpu_users_command, NULL},
    {"gpu", "clear", "GPU...", 0, "declare GPUs healthy", gpu_clear_command, NULL},
    {"gpu", "pool", "GPU POOL", 0, "give a GPU to the scheduler that places work on it",
     gpu_pool_command, NULL},
    {"slice", "list", NULL, LISTS, "list the slices of the GPUs, for VMs and containers",
     slice_list_command, slice_list_options},
    {"slice", "show", "SLICE...", LISTS, "show all about slices", slice_show_command, NULL},
    {"slice", "create", "[TYPE]", NEW | COMMAND_SETS(SLICE_KEY_ASKED_SLICE),
     "create slices, for containers or with --door vm", slice_create_command, slice_create_options},
    {"slice", "set", "SLICE...", SET, "change slices, in use or not", slice_set_command,
     slice_set_options},
    {"slice", "start", "SLICE...", 0, "start vGPUs that are defined", slice_start_command, NULL},
    {"slice", "stop", "SLICE...", 0, "stop vGPUs and keep their definitions", slice_stop_command,
     NULL},
    {"slice", "remove", "SLICE...", 0, "remove slices that nobody uses", slice_remove_command,
     slice_remove_options},
    {"slice", "claim", "SLICE", 0, "say which container uses a slice that was given by hand",
     slice_claim_command, slice_claim_options},
    {"slice", "suspend", "SLICE...", 0, "take CUDA programs' GPU memory to the host's",
     slice_suspend_command, NULL},
    {"slice", "resume", "SLICE...", 0, "let suspended programs go on", slice_resume_command, NULL},
    {"slice", "warm", "SLICE...", 0, "bring memory that has moved back before it is used",
     slice_warm_command, NULL},
    {"vgpu", "list", NULL, LISTS, "old name of \"slice list\", for vGPUs", vgpu_list_command,
     slice_list_options},
    {"vgpu", "show", "VGPU...", LISTS, "old name of \"slice show\"", vgpu_show_command, NULL},
    {"vgpu", "create", "TYPE", NEW, "old name of \"slice create --door vm\"", vgpu_create_command,
     vgpu_create_options},
    {"vgpu", "set", "VGPU...", SET, "old name of \"slice set\"", slice_set_command,
     slice_set_options},
    {"vgpu", "start", "VGPU...", 0, "old name of \"slice start\"", slice_start_command, NULL},
    {"vgpu", "stop", "VGPU...", 0, "old name of \"slice stop\"", slice_stop_command, NULL},
    {"vgpu", "remove", "VGPU...", 0, "old name of \"slice remove\"", slice_remove_command,
     slice_remove_options},
    {"owner", "list", NULL, LISTS, "list the jobs of schedulers that have slices",
     owner_list_command, NULL},
    {"owner", "release", "OWNER...", 0, "remove all slices of jobs, used or not",
     owner_release_command, owner_release_options},
    {"run", NULL, "-- PROGRAM...", ALONE | COMMAND_SETS(SLICE_KEY_RUN),
     "run a program in a slice of its own", run_command, run_options},
    {"cdi", "list", NULL, 0, "list what containers can ask for by --device", cdi_list_command,
     NULL},
    {"cdi", "generate", NULL, 0, "print the CDI specification of these devices",
     cdi_generate_command, cdi_generate_options},
    {"domain", "prepare", "DOMAIN", VM, "give a VM a vGPU at every start", domain_prepare_command,
     domain_prepare_options},
    {"attach", NULL, "DOMAIN", VM, "create a vGPU and attach it to a running VM", attach_command,
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
    {"events", NULL, NULL, 0, "follow what happens to GPUs and vGPUs", events_command,
     events_options},
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
    {"complete", NULL, "[WORD...]", ALONE | COMMAND_HIDDEN, "print what can follow these words",
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

const GOptionEntry *command_attributes(const Command *command)
{
    return slice_options(command->flags >> 8);
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
    if (strstr(args[most - 1], "..."))
        most = G_MAXUINT;
    return count >= least && count <= most;
}

/* Help texts that are made from the table of commands. */

#define WIDTH 25

/* All commands, or those of a noun, a line for each. @noun: NULL: all. To be freed. */
static char *help_commands(const char *noun)
{
    GString *text = g_string_new("Commands:\n");

    for (guint i = 0; i < commands_count; i++) {
        const Command *command = &commands[i];
        g_autofree char *words = command_words(command);

        if (!(command->flags & COMMAND_HIDDEN) && (!noun || g_str_equal(command->noun, noun)))
            g_string_append_printf(text, "  %-*s %s\n", WIDTH, words, command->help);
    }
    g_string_append(text, "\n\"vgpuctl COMMAND --help\" shows the options of a command.");
    return g_string_free(text, FALSE);
}

char *help_verbs(const char *noun)
{
    GString *verbs = g_string_new(NULL);

    for (guint i = 0; i < commands_count; i++)
        if (g_str_equal(commands[i].noun, noun) && commands[i].verb)
            g_string_append_printf(verbs, "%s%s", verbs->len ? "|" : "", commands[i].verb);
    return g_string_free(verbs, verbs->len == 0);
}

/* The options that several commands share, and the parsing of all options. */

static char *format;
static char *root_dir;
static gboolean version;
static gboolean no_headers;
static gboolean watch;

const GOptionEntry everywhere_options[] = {
    {"output", 'o', 0, G_OPTION_ARG_STRING, &format, "How to print: " FORMAT_WORDS, "FORMAT"},
    {"root", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_FILENAME, &root_dir, "Use DIR in place of /",
     "DIR"},
    {"version", 0, 0, G_OPTION_ARG_NONE, &version, "Print the version and exit", NULL},
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry everywhere_list_options[] = {
    {"no-headers", 0, 0, G_OPTION_ARG_NONE, &no_headers, "Print no column heads", NULL},
    {"watch", 'w', 0, G_OPTION_ARG_NONE, &watch, "Print again at every change", NULL},
    G_OPTION_ENTRY_NULL,
};

gboolean everywhere_takes_next(const char *arg)
{
    return g_str_equal(arg, "-o") || g_str_equal(arg, "--output") || g_str_equal(arg, "--root");
}

/* Help for a command, for all commands of a noun, or for everything. */
static GOptionContext *context_of(const Command *command, const char *noun)
{
    g_autofree char *words = command ? command_words(command) : NULL;
    g_autofree char *usage = command ? g_strconcat(words, " - ", command->help, NULL) : NULL;
    g_autofree char *verbs = noun ? help_verbs(noun) : NULL;
    g_autofree char *all = command ? NULL : help_commands(verbs ? noun : NULL);
    g_autofree char *group = verbs ? g_strconcat(noun, " COMMAND", NULL) : g_strdup("COMMAND");
    GOptionContext *context = g_option_context_new(command ? usage : group);

    if (command && command->options)
        g_option_context_add_main_entries(context, command->options, NULL);
    if (command)
        g_option_context_add_main_entries(context, command_attributes(command), NULL);
    if (command && command->flags & COMMAND_LISTS)
        g_option_context_add_main_entries(context, everywhere_list_options, NULL);
    g_option_context_add_main_entries(context, everywhere_options, NULL);
    if (all)
        g_option_context_set_summary(context, all);
    return context;
}

gboolean everywhere_parse(const Command *command, const char *noun, int *argc, char ***argv,
                          Options *options, GError **error)
{
    g_autoptr(GOptionContext) context = context_of(command, noun);

    if (!g_option_context_parse(context, argc, argv, error)) {
        (*error)->domain = VGPUCTL_ERROR;
        (*error)->code = VGPUCTL_USAGE;
        return FALSE;
    }
    if (format && !format_parse(format, &options->format)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--output cannot be \"%s\": it must be one of " FORMAT_WORDS, format);
        return FALSE;
    }
    options->no_headers = no_headers;
    options->root = host_root_new(root_dir, error);
    if (!options->root) {
        (*error)->domain = VGPUCTL_ERROR;
        (*error)->code = VGPUCTL_USAGE;
        return FALSE;
    }
    options->colour = output_has_colour(options->out);
    return TRUE;
}

gboolean everywhere_watch(void)
{
    return watch;
}

gboolean everywhere_version(void)
{
    return version;
}
