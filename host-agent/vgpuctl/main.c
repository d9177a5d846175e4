/* SPDX-License-Identifier: MIT */
/* vgpuctl(1): verbs on nouns, for people and for scripts. */
#include <gio/gio.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "lib/bus.h"
#include "host-agent/vgpuctl/each.h"
#include "host-agent/vgpuctl/everywhere.h"
#include "host-agent/vgpuctl/help.h"
#include "host-agent/vgpuctl/watch.h"

/* The command, before its options are known: the first two @words that are none. */
static const Command *guess_command(char **argv, const char *words[2])
{
    guint count = 0;

    for (guint i = 1; argv[i] && count < 2; i++) {
        if (everywhere_takes_next(argv[i]) && argv[i + 1])
            i++;
        else if (argv[i][0] != '-')
            words[count++] = argv[i];
    }
    return command_find(words[0], words[1]);
}

static gboolean set_unknown(char **args, GError **error)
{
    g_autofree char *verbs = args[0] ? help_verbs(args[0]) : NULL;

    if (!args[0])
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "no command");
    else if (verbs)
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "no command \"%s%s%s\"; usage: vgpuctl %s %s", args[0], args[1] ? " " : "",
                    args[1] ? args[1] : "", args[0], verbs);
    else
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "no command \"%s\"", args[0]);
    return FALSE;
}

static gboolean run(const Command *command, char **args, const Options *options, GError **error)
{
    g_autoptr(Client) client = NULL;
    char **rest;

    if (!command)
        return set_unknown(args, error);
    rest = args + (command->verb ? 2 : 1);
    if (!command_takes(command, g_strv_length(rest))) {
        g_autofree char *words = command_words(command);

        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "usage: vgpuctl %s", words);
        return FALSE;
    }
    if (!(command->flags & COMMAND_ALONE) && !(client = client_new(error)))
        return FALSE;
    if (everywhere_watch())
        return watch_run(command, client, options, rest, error);
    return command->run(client, options, rest, error);
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

static int report(const GError *error)
{
    each_print_error(error);
    if (g_error_matches(error, VGPUCTL_ERROR, VGPUCTL_USAGE))
        g_printerr("See vgpuctl --help.\n");
    return exit_code(error);
}

int main(int argc, char **argv)
{
    const char *words[2] = {NULL, NULL};
    const Command *command = guess_command(argv, words);
    g_autoptr(GError) error = NULL;
    Options options = {.out = stdout};
    int status;

    setlocale(LC_ALL, "");
    /* So that vgpud's errors come as what they are. */
    (void)AGENT_ERROR;
    if (!everywhere_parse(command, words[0], &argc, &argv, &options, &error))
        return report(error);
    if (everywhere_version()) {
        puts("vgpuctl " VGPU_VERSION);
        status = 0;
    } else {
        status = run(command, argv + 1, &options, &error) ? 0 : report(error);
    }
    host_root_unref(options.root);
    return status;
}
