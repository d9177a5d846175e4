/* SPDX-License-Identifier: MIT */
/*
 * The commands of vgpuctl: what each does, and the one table of them that the command line, the
 * help and the shells' completions are made from.
 */
#ifndef VGPUCTL_COMMAND_H
#define VGPUCTL_COMMAND_H

#include <glib.h>

#include "host-agent/vgpuctl/client.h"
#include "host-agent/vgpuctl/output.h"

/* Prints to @options->out and returns TRUE, or sets @error. @client: NULL for COMMAND_ALONE. @args:
 * what follows the verb, NULL terminated. */
typedef gboolean CommandFunc(Client *client, const Options *options, char **args, GError **error);

enum {
    COMMAND_ALONE = 1 << 0,  /* needs no vgpud */
    COMMAND_LISTS = 1 << 1,  /* prints objects: has --no-headers and --watch */
    COMMAND_HIDDEN = 1 << 2, /* for the use of other programs */
};

/* The attributes of slices that are options of a command, by their uses (slice_keys.h). */
#define COMMAND_SETS(uses) ((guint)(uses) << 8)

/**
 * Command
 * @verb: NULL: the noun stands alone
 * @args: names of its arguments; one in brackets may be left out, one that ends with "..." may be
 * given several times; NULL: none. word_kinds in completion.c says what each name stands for.
 * @flags: of COMMAND_… and COMMAND_SETS()
 * @options: of this command, besides those of COMMAND_SETS(); NULL: none
 */
typedef struct {
    const char *noun;
    const char *verb;
    const char *args;
    guint flags;
    const char *help;
    CommandFunc *run;
    const GOptionEntry *options;
} Command;

extern const Command commands[];
extern const guint commands_count;

/* "gpu mode GPU MODE". To be freed. */
char *command_words(const Command *command);

/* The command that these two words name, the second of which may be NULL. NULL: there is none. */
const Command *command_find(const char *noun, const char *verb);

/* The options that are attributes of slices, up to G_OPTION_ENTRY_NULL. */
const GOptionEntry *command_attributes(const Command *command);

/* So many arguments are right. */
gboolean command_takes(const Command *command, guint count);

CommandFunc gpu_list_command;
CommandFunc gpu_show_command;
CommandFunc gpu_mode_command;
CommandFunc gpu_drain_command;
CommandFunc gpu_resume_command;
CommandFunc gpu_users_command;
CommandFunc gpu_clear_command;
CommandFunc gpu_pool_command;
CommandFunc vgpu_list_command;
CommandFunc vgpu_show_command;
CommandFunc vgpu_create_command;
CommandFunc slice_list_command;
CommandFunc slice_show_command;
CommandFunc slice_create_command;
CommandFunc slice_set_command;
CommandFunc slice_start_command;
CommandFunc slice_stop_command;
CommandFunc slice_remove_command;
CommandFunc slice_claim_command, slice_suspend_command, slice_resume_command, slice_warm_command;
CommandFunc owner_list_command;
CommandFunc owner_release_command;
CommandFunc run_command;
CommandFunc cdi_list_command;
CommandFunc cdi_generate_command;
CommandFunc domain_prepare_command;
CommandFunc attach_command;
CommandFunc detach_command;
CommandFunc type_list_command;
CommandFunc type_show_command;
CommandFunc tenant_list_command;
CommandFunc tenant_show_command;
CommandFunc tenant_set_command;
CommandFunc tenant_remove_command;
CommandFunc schedule_list_command;
CommandFunc schedule_run_command;
CommandFunc topo_command;
CommandFunc top_command;
CommandFunc report_command;
CommandFunc events_command;
CommandFunc reload_command;
CommandFunc doctor_command;
CommandFunc operation_list_command;
CommandFunc operation_cancel_command;
CommandFunc config_export_command;
CommandFunc config_diff_command;
CommandFunc config_apply_command;
CommandFunc database_backup_command;
CommandFunc database_restore_command;
CommandFunc audit_command;
CommandFunc completion_command;
CommandFunc complete_command;

/* Options of single commands, which write to variables of the file that has them. */
extern const GOptionEntry gpu_list_options[];
extern const GOptionEntry gpu_mode_options[];
extern const GOptionEntry gpu_drain_options[];
extern const GOptionEntry vgpu_create_options[];
extern const GOptionEntry vgpu_for_domain_options[];
extern const GOptionEntry domain_prepare_options[];
extern const GOptionEntry slice_list_options[];
extern const GOptionEntry slice_create_options[];
extern const GOptionEntry slice_set_options[];
extern const GOptionEntry owner_release_options[];
extern const GOptionEntry slice_remove_options[];
extern const GOptionEntry slice_claim_options[];
extern const GOptionEntry run_options[];
extern const GOptionEntry cdi_generate_options[];
extern const GOptionEntry detach_options[];
extern const GOptionEntry config_apply_options[];
extern const GOptionEntry events_options[];
extern const GOptionEntry audit_options[];
extern const GOptionEntry type_list_options[];
extern const GOptionEntry tenant_list_options[];
extern const GOptionEntry tenant_set_options[];
extern const GOptionEntry top_options[];
extern const GOptionEntry report_options[];
extern const GOptionEntry doctor_options[];

/* Help texts that are made from the table of commands. */

/* "list|show|mode" of a noun; NULL: it has no verbs, or there is no such noun. To be freed. */
char *help_verbs(const char *noun);

/* The options that several commands share, and the parsing of all options. */

/* Of every command; and of those that list objects (COMMAND_LISTS). */
extern const GOptionEntry everywhere_options[];
extern const GOptionEntry everywhere_list_options[];

/* @arg is one of these that has its value in the next word. */
gboolean everywhere_takes_next(const char *arg);

/*
 * Takes the options out of the command line. @command: NULL: not known; then --help shows the
 * commands of @noun, the first word, or all if that is NULL or no noun. VGPUCTL_USAGE.
 */
gboolean everywhere_parse(const Command *command, const char *noun, int *argc, char ***argv,
                          Options *options, GError **error);

gboolean everywhere_watch(void);
gboolean everywhere_version(void);

#endif
