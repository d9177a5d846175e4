/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/everywhere.h"

#include "host-agent/vgpuctl/help.h"

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
