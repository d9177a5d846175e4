/* SPDX-License-Identifier: MIT */
/* vgpuctl(1): verbs on nouns, for people and for scripts. */
#include <locale.h>
#include <stdio.h>
#include <unistd.h>
#include <gio/gio.h>
#include <json-glib/json-glib.h>

#include "lib/bus.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/output.h"

/* --watch: a command that prints again whenever what it prints has changed. */

/* What changes without a signal of vgpud's, as counters do, is seen after this. */
#define INTERVAL_MS 2000
/* Signals that come together are one change. */
#define SETTLE_US (100 * 1000)
/* Cursor to the upper left, and all after it blank. */
#define CLEAR_SCREEN "\033[H\033[J"

/* NULL with @error. To be freed by free(). */
static char *run_once(const Command *command, Client *client, const Options *options, char **args,
                      GError **error)
{
    Options inner = *options;
    gboolean done;
    char *text = NULL;
    size_t size;

    inner.out = open_memstream(&text, &size);
    done = command->run(client, &inner, args, error);
    fclose(inner.out);
    if (done)
        return text;
    free(text);
    return NULL;
}

static void signal_told(GDBusConnection *bus, const char *sender, const char *path,
                        const char *interface, const char *signal, GVariant *arguments,
                        void *changed)
{
    (void)bus, (void)sender, (void)path, (void)interface, (void)signal, (void)arguments;
    *(gboolean *)changed = TRUE;
}

static guint subscribe_to_agent(GDBusConnection *bus, gboolean *changed)
{
    return g_dbus_connection_signal_subscribe(bus, VGPU_BUS_NAME, NULL, NULL, NULL, NULL,
                                              G_DBUS_SIGNAL_FLAGS_NONE, signal_told, changed, NULL);
}

static gboolean look_again(void *changed)
{
    *(gboolean *)changed = TRUE;
    return G_SOURCE_CONTINUE;
}

/* Documents that follow each other: JSON on one line each, YAML with its own separator. */
static void print_document(const Options *options, const char *text)
{
    g_autoptr(JsonNode) node = options->format == FORMAT_JSON ? json_from_string(text, NULL) : NULL;
    g_autofree char *line = node ? json_to_string(node, FALSE) : NULL;

    if (isatty(fileno(options->out)))
        fputs(CLEAR_SCREEN, options->out);
    if (options->format == FORMAT_YAML)
        fputs("---\n", options->out);
    fputs(line ? line : text, options->out);
    if (line)
        fputc('\n', options->out);
    fflush(options->out);
}

/* vgpud is restarted, as by an upgrade: said once, and waited for. @last: what was printed. */
static gboolean is_passing(const GError *error, char **last)
{
    if (!*last || !g_error_matches(error, VGPUCTL_ERROR, VGPUCTL_UNREACHABLE))
        return FALSE;
    if (**last)
        g_printerr("vgpuctl: %s; waiting for it\n", error->message);
    **last = '\0';
    return TRUE;
}

/* Returns with an error only; a signal ends the process. A terminal is cleared each time. */
static gboolean watch_run(const Command *command, Client *client, const Options *options,
                          char **args, GError **error)
{
    GDBusConnection *bus =
        client ? g_dbus_proxy_get_connection(G_DBUS_PROXY(client->manager)) : NULL;
    gboolean changed = FALSE;
    char *last = NULL;
    guint subscription = bus ? subscribe_to_agent(bus, &changed) : 0;
    guint timer = g_timeout_add(INTERVAL_MS, look_again, &changed);

    for (;;) {
        g_autoptr(GError) cause = NULL;
        char *text = run_once(command, client, options, args, &cause);

        if (!text && !is_passing(cause, &last)) {
            g_propagate_error(error, g_steal_pointer(&cause));
            break;
        }
        if (text && g_strcmp0(text, last) != 0)
            print_document(options, text);
        if (text) {
            free(last);
            last = text;
        }
        changed = FALSE;
        while (!changed)
            g_main_context_iteration(NULL, TRUE);
        g_usleep(SETTLE_US);
        while (g_main_context_iteration(NULL, FALSE))
            ;
    }
    free(last);
    g_source_remove(timer);
    if (bus)
        g_dbus_connection_signal_unsubscribe(bus, subscription);
    return FALSE;
}

/* vgpuctl(1): verbs on nouns, for people and for scripts. */

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

static gboolean execute_command(const Command *command, char **args, const Options *options,
                                GError **error)
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
    case AGENT_ERROR_NO_ROOM_NOW:
    case AGENT_ERROR_QUOTA:
        return VGPUCTL_NO_ROOM;
    default:
        return VGPUCTL_FAILED;
    }
}

static int report_error(const GError *error)
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
        return report_error(error);
    if (everywhere_version()) {
        puts("vgpuctl " VGPU_VERSION);
        status = 0;
    } else {
        status = execute_command(command, argv + 1, &options, &error) ? 0 : report_error(error);
    }
    host_root_unref(options.root);
    return status;
}
