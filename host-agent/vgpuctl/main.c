/* SPDX-License-Identifier: MIT */
/* vgpuctl(1): verbs on nouns, for people and for scripts. */
#include <gio/gio.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

/**
 * struct verb - a command of the command line
 * @verb: NULL: the noun stands alone
 * @args: names of its arguments, for the help text; NULL: none
 * @count: how many
 * @alone: needs no vgpud
 */
static const struct verb {
    const char *noun;
    const char *verb;
    const char *args;
    guint count;
    gboolean alone;
    const char *help;
    Command *run;
} verbs[] = {
    {"gpu", "list", NULL, 0, FALSE, "the GPUs of this host", gpu_list_command},
    {"gpu", "show", "GPU", 1, FALSE, "all about one GPU", gpu_show_command},
    {"vgpu", "list", NULL, 0, FALSE, "the vGPUs that there are", vgpu_list_command},
    {"vgpu", "show", "UUID", 1, FALSE, "all about one vGPU", vgpu_show_command},
    {"type", "list", NULL, 0, FALSE, "the types of vGPUs that GPUs offer", type_list_command},
    {"topo", NULL, NULL, 0, FALSE, "how near the GPUs are to each other", topo_command},
    {"events", NULL, NULL, 0, FALSE, "what happens to the GPUs, as it happens", events_command},
    {"doctor", NULL, NULL, 0, TRUE, "what is amiss on this host, and what to do", doctor_command},
};

static char *summary(void)
{
    GString *text = g_string_new("Commands:\n");

    for (guint i = 0; i < G_N_ELEMENTS(verbs); i++) {
        const struct verb *verb = &verbs[i];
        g_autofree char *words = g_strjoin(" ", verb->noun, verb->verb ? verb->verb : "",
                                           verb->args ? verb->args : "", NULL);

        g_string_append_printf(text, "  %-22s %s\n", words, verb->help);
    }
    return g_string_free(text, FALSE);
}

static const struct verb *find_verb(char **args)
{
    for (guint i = 0; args[0] && i < G_N_ELEMENTS(verbs); i++) {
        const struct verb *verb = &verbs[i];

        if (g_str_equal(verb->noun, args[0]) &&
            (!verb->verb || g_strcmp0(verb->verb, args[1]) == 0))
            return verb;
    }
    return NULL;
}

static gboolean run(char **args, const Options *options, GError **error)
{
    const struct verb *verb = find_verb(args);
    g_autoptr(Client) client = NULL;
    char **rest;

    if (!verb) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "there is no command \"%s%s%s\"",
                    args[0] ? args[0] : "", args[0] && args[1] ? " " : "",
                    args[0] && args[1] ? args[1] : "");
        return FALSE;
    }
    rest = args + (verb->verb ? 2 : 1);
    if (g_strv_length(rest) != verb->count) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "%s %s takes %s%s", verb->noun,
                    verb->verb ? verb->verb : "", verb->args ? "one argument: " : "no argument",
                    verb->args ? verb->args : "");
        return FALSE;
    }
    if (!verb->alone && !(client = client_new(error)))
        return FALSE;
    return verb->run(client, options, rest, error);
}

static int report(const GError *error)
{
    g_autofree char *message = g_strdup(error->message);

    if (g_dbus_error_is_remote_error(error)) {
        g_autoptr(GError) copy = g_error_copy(error);

        g_dbus_error_strip_remote_error(copy);
        g_free(message);
        message = g_strdup(copy->message);
    }
    g_printerr("vgpuctl: %s\n", message);
    if (error->domain != VGPUCTL_ERROR)
        return VGPUCTL_FAILED;
    if (error->code == VGPUCTL_USAGE)
        g_printerr("See vgpuctl --help.\n");
    return error->code;
}

static gboolean parse(int *argc, char ***argv, char **format, char **root, gboolean *version,
                      GError **error)
{
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_STRING, format, "How to print: table, json", "FORMAT"},
        {"root", 0, 0, G_OPTION_ARG_FILENAME, root, "doctor: use DIR in place of /, for tests",
         "DIR"},
        {"version", 0, 0, G_OPTION_ARG_NONE, version, "Print the version and end", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new("COMMAND");
    g_autofree char *commands = summary();

    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_set_summary(context, commands);
    if (!g_option_context_parse(context, argc, argv, error)) {
        (*error)->domain = VGPUCTL_ERROR;
        (*error)->code = VGPUCTL_USAGE;
        return FALSE;
    }
    if (*format && !g_str_equal(*format, "table") && !g_str_equal(*format, "json")) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "output can be table or json, not \"%s\"",
                    *format);
        return FALSE;
    }
    return TRUE;
}

int main(int argc, char **argv)
{
    g_autofree char *format = NULL;
    g_autofree char *root = NULL;
    g_autoptr(GError) error = NULL;
    gboolean version = FALSE;
    Options options = {0};

    setlocale(LC_ALL, "");
    if (!parse(&argc, &argv, &format, &root, &version, &error))
        return report(error);
    if (version) {
        puts("vgpuctl " VGPU_VERSION);
        return 0;
    }
    options.root = root ? root : "";
    options.json = g_strcmp0(format, "json") == 0;
    if (!run(argv + 1, &options, &error))
        return report(error);
    return 0;
}
