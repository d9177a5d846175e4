/* SPDX-License-Identifier: MIT */
/* vgpuctl(1): verbs on nouns, for people and for scripts. */
#include <gio/gio.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/text.h"
#include "lib/bus.h"

/**
 * struct verb - a command of the command line
 * @verb: NULL: the noun stands alone
 * @args: names of its arguments, for the help text, the last in brackets where it may be left out; NULL: none
 * @count: how many
 * @alone: needs no vgpud
 * @options: of this command only; NULL: none
 */
static const struct verb {
    const char *noun;
    const char *verb;
    const char *args;
    guint count;
    gboolean alone;
    const char *help;
    Command *run;
    const GOptionEntry *options;
} verbs[] = {
    {"gpu", "list", NULL, 0, FALSE, "the GPUs of this host", gpu_list_command, NULL},
    {"gpu", "show", "GPU", 1, FALSE, "all about one GPU", gpu_show_command, NULL},
    {"gpu", "mode", "GPU MODE", 2, FALSE, "switch a GPU to host, shared, passthrough, partitioned",
     gpu_mode_command, gpu_mode_options},
    {"gpu", "drain", "GPU", 1, FALSE, "let a shared GPU run empty: no new vGPU, no VM opens one",
     gpu_drain_command, NULL},
    {"gpu", "resume", "GPU", 1, FALSE, "end that", gpu_resume_command, NULL},
    {"gpu", "users", "GPU", 1, FALSE, "every VM, vGPU and process that has a GPU",
     gpu_users_command, NULL},
    {"gpu", "clear", "GPU", 1, FALSE, "forget what was found wrong with a GPU", gpu_clear_command,
     NULL},
    {"vgpu", "list", NULL, 0, FALSE, "the vGPUs that there are", vgpu_list_command, NULL},
    {"vgpu", "show", "UUID", 1, FALSE, "all about one vGPU", vgpu_show_command, NULL},
    {"vgpu", "create", "TYPE", 1, FALSE, "make vGPUs where there is room", vgpu_create_command,
     vgpu_create_options},
    {"vgpu", "set", "UUID", 1, FALSE, "change a vGPU, running or not", vgpu_set_command,
     vgpu_set_options},
    {"vgpu", "remove", "UUID", 1, FALSE, "end a vGPU that no VM has open", vgpu_remove_command,
     vgpu_remove_options},
    {"slice", "list", NULL, 0, FALSE, "the slices for containers, and who has them",
     slice_list_command, NULL},
    {"slice", "show", "SLICE", 1, FALSE, "all about one", slice_show_command, NULL},
    {"slice", "create", "[TYPE]", 1, FALSE, "make a slice for containers where there is room",
     slice_create_command, slice_create_options},
    {"slice", "set", "SLICE", 1, FALSE, "change a slice, in use or not", slice_set_command,
     vgpu_set_options},
    {"slice", "remove", "SLICE", 1, FALSE, "end a slice that no container has",
     slice_remove_command, slice_remove_options},
    {"cdi", "list", NULL, 0, FALSE, "what containers can ask for by --device", cdi_list_command,
     NULL},
    {"cdi", "generate", NULL, 0, FALSE, "print the CDI specification of these devices",
     cdi_generate_command, cdi_generate_options},
    {"domain", "prepare", "DOMAIN", 1, FALSE, "give a VM a vGPU from its next start on",
     domain_prepare_command, vgpu_for_domain_options},
    {"attach", NULL, "DOMAIN", 1, FALSE, "make a vGPU and give it to a running VM", attach_command,
     vgpu_for_domain_options},
    {"detach", NULL, "DOMAIN [UUID]", 2, FALSE, "take a vGPU from a running VM", detach_command,
     detach_options},
    {"type", "list", NULL, 0, FALSE, "the types of vGPUs that GPUs offer", type_list_command, NULL},
    {"tenant", "list", NULL, 0, FALSE, "tenants, their quotas and what they have",
     tenant_list_command, NULL},
    {"tenant", "set", "NAME", 1, FALSE, "make a tenant, or change its quotas", tenant_set_command,
     tenant_set_options},
    {"tenant", "remove", "NAME", 1, FALSE, "forget a tenant that has no vGPU",
     tenant_remove_command, NULL},
    {"schedule", "list", NULL, 0, FALSE, "modes by the clock, in the order of their next time",
     schedule_list_command, NULL},
    {"topo", NULL, NULL, 0, FALSE, "how near the GPUs are to each other", topo_command, NULL},
    {"events", NULL, NULL, 0, FALSE, "what happens to GPUs and vGPUs, as it happens",
     events_command, NULL},
    {"top", NULL, NULL, 0, FALSE, "what the vGPUs do, second by second", top_command, top_options},
    {"report", NULL, NULL, 0, FALSE, "what was promised and used in a month", report_command,
     report_options},
    {"reload", NULL, NULL, 0, FALSE, "read /etc/vgpu anew", reload_command, NULL},
    {"doctor", NULL, NULL, 0, TRUE, "what is amiss on this host, and what to do", doctor_command,
     doctor_options},
};

static char *words_of(const struct verb *verb)
{
    return g_strjoin(" ", verb->noun, verb->verb ? verb->verb : verb->args, verb->verb ? verb->args : NULL,
                     NULL);
}

static char *summary(void)
{
    GString *text = g_string_new("Commands:\n");

    for (guint i = 0; i < G_N_ELEMENTS(verbs); i++) {
        g_autofree char *words = words_of(&verbs[i]);

        g_string_append_printf(text, "  %-22s %s\n", words, verbs[i].help);
    }
    g_string_append(text, "\n\"vgpuctl COMMAND --help\" shows a command's own options.");
    return g_string_free(text, FALSE);
}

static const struct verb *find_verb(const char *noun, const char *word)
{
    for (guint i = 0; noun && i < G_N_ELEMENTS(verbs); i++) {
        const struct verb *verb = &verbs[i];

        if (g_str_equal(verb->noun, noun) && (!verb->verb || g_strcmp0(verb->verb, word) == 0))
            return verb;
    }
    return NULL;
}

/* Of the options that are allowed everywhere, those that have their value in the next word. */
static gboolean takes_next(const char *arg)
{
    return g_str_equal(arg, "-o") || g_str_equal(arg, "--output") || g_str_equal(arg, "--root");
}

/* The command, before its options are known: the first two words that are none. */
static const struct verb *guess_verb(char **argv)
{
    const char *words[2] = {NULL, NULL};
    guint count = 0;

    for (guint i = 1; argv[i] && count < G_N_ELEMENTS(words); i++) {
        if (takes_next(argv[i]) && argv[i + 1])
            i++;
        else if (argv[i][0] != '-')
            words[count++] = argv[i];
    }
    return find_verb(words[0], words[1]);
}

/* An argument in brackets may be left out: then it is NULL. */
static gboolean is_count(const struct verb *verb, guint count)
{
    return count == verb->count ||
           (verb->args && strchr(verb->args, '[') && count + 1 == verb->count);
}

static gboolean run(const struct verb *verb, char **args, const Options *options, GError **error)
{
    g_autoptr(Client) client = NULL;
    char **rest;

    if (!verb) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "there is no command \"%s%s%s\"",
                    args[0] ? args[0] : "", args[0] && args[1] ? " " : "",
                    args[0] && args[1] ? args[1] : "");
        return FALSE;
    }
    rest = args + (verb->verb ? 2 : 1);
    if (!is_count(verb, g_strv_length(rest))) {
        g_autofree char *words = words_of(verb);

        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "it is \"vgpuctl %s\"", words);
        return FALSE;
    }
    if (!verb->alone && !(client = client_new(error)))
        return FALSE;
    return verb->run(client, options, rest, error);
}

/* vgpud's errors that scripts want to tell apart have exit codes of their own. */
static int exit_code(const GError *error)
{
    if (error->domain == VGPUCTL_ERROR)
        return error->code;
    if (error->domain != AGENT_ERROR)
        return VGPUCTL_FAILED;
    switch (error->code) {
    case AGENT_ERROR_INVALID:
        return VGPUCTL_USAGE;
    case AGENT_ERROR_NOT_FOUND:
        return VGPUCTL_NOT_FOUND;
    case AGENT_ERROR_NOT_AUTHORIZED:
        return VGPUCTL_NOT_AUTHORIZED;
    case AGENT_ERROR_IN_USE:
        return VGPUCTL_IN_USE;
    case AGENT_ERROR_NO_ROOM:
    case AGENT_ERROR_QUOTA:
        return VGPUCTL_NO_ROOM;
    default:
        return VGPUCTL_FAILED;
    }
}

static int report(GError *error)
{
    g_autofree char *shown = NULL;

    g_dbus_error_strip_remote_error(error);
    shown = text_printable(g_strdup(error->message));
    g_printerr("vgpuctl: %s\n", shown);
    if (g_error_matches(error, VGPUCTL_ERROR, VGPUCTL_USAGE))
        g_printerr("See vgpuctl --help.\n");
    return exit_code(error);
}

static GOptionContext *context_of(const struct verb *verb, const GOptionEntry *everywhere)
{
    g_autofree char *words = verb ? words_of(verb) : NULL;
    g_autofree char *usage = verb ? g_strconcat(words, " - ", verb->help, NULL) : NULL;
    g_autofree char *commands = summary();
    GOptionContext *context = g_option_context_new(verb ? usage : "COMMAND");

    if (verb && verb->options)
        g_option_context_add_main_entries(context, verb->options, NULL);
    g_option_context_add_main_entries(context, everywhere, NULL);
    if (!verb)
        g_option_context_set_summary(context, commands);
    return context;
}

static gboolean parse(const struct verb *verb, int *argc, char ***argv, char **format, char **root,
                      gboolean *version, GError **error)
{
    const GOptionEntry everywhere[] = {
        {"output", 'o', 0, G_OPTION_ARG_STRING, format, "How to print: table, json", "FORMAT"},
        {"root", 0, 0, G_OPTION_ARG_FILENAME, root, "doctor: use DIR in place of /, for tests",
         "DIR"},
        {"version", 0, 0, G_OPTION_ARG_NONE, version, "Print the version and end", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = context_of(verb, everywhere);

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
    const struct verb *verb = guess_verb(argv);
    g_autofree char *format = NULL;
    g_autofree char *root = NULL;
    g_autoptr(GError) error = NULL;
    gboolean version = FALSE;
    Options options = {0};

    setlocale(LC_ALL, "");
    /* So that vgpud's errors come as what they are. */
    (void)AGENT_ERROR;
    if (!parse(verb, &argc, &argv, &format, &root, &version, &error))
        return report(error);
    if (version) {
        puts("vgpuctl " VGPU_VERSION);
        return 0;
    }
    options.root = root ? root : "";
    options.json = g_strcmp0(format, "json") == 0;
    if (!run(verb, argv + 1, &options, &error))
        return report(error);
    return 0;
}
