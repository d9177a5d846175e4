/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/watch.h"

#include <unistd.h>

#include "lib/bus.h"

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

static void told(GDBusConnection *bus, const char *sender, const char *path, const char *interface,
                 const char *signal, GVariant *arguments, void *changed)
{
    (void)bus, (void)sender, (void)path, (void)interface, (void)signal, (void)arguments;
    *(gboolean *)changed = TRUE;
}

static guint subscribe(GDBusConnection *bus, gboolean *changed)
{
    return g_dbus_connection_signal_subscribe(bus, VGPU_BUS_NAME, NULL, NULL, NULL, NULL,
                                              G_DBUS_SIGNAL_FLAGS_NONE, told, changed, NULL);
}

static gboolean look_again(void *changed)
{
    *(gboolean *)changed = TRUE;
    return G_SOURCE_CONTINUE;
}

static void print(const Options *options, const char *text)
{
    if (isatty(fileno(options->out)))
        fputs(CLEAR_SCREEN, options->out);
    fputs(text, options->out);
    fflush(options->out);
}

gboolean watch_run(const Command *command, Client *client, const Options *options, char **args,
                   GError **error)
{
    GDBusConnection *bus =
        client ? g_dbus_proxy_get_connection(G_DBUS_PROXY(client->manager)) : NULL;
    gboolean changed = FALSE;
    char *last = NULL;
    guint subscription = bus ? subscribe(bus, &changed) : 0;
    guint timer = g_timeout_add(INTERVAL_MS, look_again, &changed);

    for (;;) {
        char *text = run_once(command, client, options, args, error);

        if (!text)
            break;
        if (g_strcmp0(text, last) != 0)
            print(options, text);
        free(last);
        last = text;
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
