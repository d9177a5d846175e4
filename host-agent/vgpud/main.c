/* SPDX-License-Identifier: MIT */
/* vgpud(8): the host agent. The data path goes on whatever happens to it. */
#include <gio/gio.h>
#include <glib-unix.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "bus_names.h"
#include "host.h"
#include "hotplug.h"
#include "inventory.h"

/**
 * Agent - the daemon
 * @root: what stands for /, "" in production
 * @status: exit status
 */
typedef struct {
    GMainLoop *loop;
    char *root;
    Inventory *inventory;
    Host *host;
    Hotplug *hotplug;
    int status;
} Agent;

static void refresh(void *data)
{
    const Agent *agent = data;

    if (agent->host)
        host_refresh(agent->host);
}

static void bus_acquired(GDBusConnection *bus, const char *name, void *data)
{
    Agent *agent = data;

    (void)name;
    agent->host = host_new(bus, agent->inventory);
}

static void name_lost(GDBusConnection *bus, const char *name, void *data)
{
    Agent *agent = data;

    if (!bus)
        g_printerr("vgpud: there is no D-Bus to be reached on; is dbus.service running?\n");
    else
        g_printerr("vgpud: the name %s on D-Bus belongs to somebody else, or this user may not "
                   "have it; is another vgpud running?\n",
                   name);
    agent->status = EXIT_FAILURE;
    g_main_loop_quit(agent->loop);
}

static gboolean end(void *data)
{
    const Agent *agent = data;

    g_main_loop_quit(agent->loop);
    return G_SOURCE_CONTINUE;
}

static gboolean start(Agent *agent)
{
    g_autoptr(GError) error = NULL;

    agent->inventory = inventory_new(agent->root ? agent->root : "");
    agent->hotplug = hotplug_new(refresh, agent, &error);
    if (!agent->hotplug) {
        g_printerr("vgpud: %s\n", error->message);
        return FALSE;
    }
    return TRUE;
}

static void stop(Agent *agent)
{
    g_clear_pointer(&agent->hotplug, hotplug_free);
    g_clear_pointer(&agent->host, host_free);
    g_clear_pointer(&agent->inventory, inventory_free);
    g_main_loop_unref(agent->loop);
    g_free(agent->root);
}

static int serve(Agent *agent)
{
    guint owner = g_bus_own_name(G_BUS_TYPE_SYSTEM, VGPU_BUS_NAME, G_BUS_NAME_OWNER_FLAGS_NONE,
                                 bus_acquired, NULL, name_lost, agent, NULL);

    g_unix_signal_add(SIGTERM, end, agent);
    g_unix_signal_add(SIGINT, end, agent);
    g_main_loop_run(agent->loop);
    g_bus_unown_name(owner);
    return agent->status;
}

int main(int argc, char **argv)
{
    Agent agent = {0};
    gboolean version = FALSE;
    const GOptionEntry entries[] = {
        {"root", 0, 0, G_OPTION_ARG_FILENAME, &agent.root, "Use DIR in place of /, for tests",
         "DIR"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &version, "Print the version and end", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new("- the host agent for vGPUs");
    g_autoptr(GError) error = NULL;
    int status = EXIT_FAILURE;

    setlocale(LC_ALL, "");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        g_printerr("vgpud: %s (see vgpud --help)\n", error->message);
        return 2;
    }
    if (version) {
        puts("vgpud " VGPU_VERSION);
        return EXIT_SUCCESS;
    }
    agent.loop = g_main_loop_new(NULL, FALSE);
    if (start(&agent))
        status = serve(&agent);
    stop(&agent);
    return status;
}
