/* SPDX-License-Identifier: MIT */
/* vgpud(8): the host agent. The data path does not depend on it. */
#include <gio/gio.h>
#include <glib-unix.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "host-agent/daemon/agent.h"
#include "host-agent/daemon/engines/vgpu_states.h"
#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/metering/metering_bus.h"
#include "host-agent/daemon/sync/node_access.h"
#include "lib/bus.h"
#include "lib/program.h"

#define TRIM_BYTES (128 * 1024)

/**
 * Daemon
 * @status: exit status
 */
typedef struct {
    GMainLoop *loop;
    HostRoot *root;
    Agent *agent;
    MeteringBus *metering;
    Hotplug *hotplug;
    int status;
} Daemon;

static void refresh_all(gboolean lost, void *data)
{
    const Daemon *daemon = data;

    if (lost)
        agent_events_lost(daemon->agent);
    else
        agent_refresh(daemon->agent);
}

static void vgpu_changed(const char *uuid, void *data)
{
    const Daemon *daemon = data;

    agent_update_vgpu(daemon->agent, uuid);
}

static void bus_acquired(GDBusConnection *bus, const char *name, void *data)
{
    Daemon *daemon = data;
    MeterLink meter;

    (void)name;
    agent_export(daemon->agent, bus);
    daemon->metering = metering_bus_new(agent_metering(daemon->agent), bus);
    meter = metering_bus_link(daemon->metering);
    agent_set_meter(daemon->agent, &meter);
}

static void name_lost(GDBusConnection *bus, const char *name, void *data)
{
    Daemon *daemon = data;

    if (!bus)
        g_printerr("vgpud: cannot connect to D-Bus; is dbus.service running?\n");
    else
        g_printerr("vgpud: cannot take the name %s on D-Bus: another process owns it, or this user "
                   "may not; is another vgpud running?\n",
                   name);
    daemon->status = EXIT_FAILURE;
    g_main_loop_quit(daemon->loop);
}

static gboolean end_loop(void *data)
{
    const Daemon *daemon = data;

    g_main_loop_quit(daemon->loop);
    return G_SOURCE_CONTINUE;
}

static gboolean start_agent(Daemon *daemon)
{
    g_autoptr(GError) error = NULL;

    daemon->agent = agent_new(daemon->root, &error);
    if (daemon->agent)
        daemon->hotplug = hotplug_new(refresh_all, vgpu_changed, daemon, &error);
    if (!daemon->hotplug) {
        g_printerr("vgpud: %s\n", error->message);
        return FALSE;
    }
    vgpu_states_set_watched(host_vgpu_states(agent_host(daemon->agent)), TRUE);
    return TRUE;
}

static void stop_agent(Daemon *daemon)
{
    g_clear_pointer(&daemon->hotplug, hotplug_free);
    if (daemon->agent)
        agent_set_meter(daemon->agent, &(MeterLink){NULL, NULL, NULL});
    g_clear_pointer(&daemon->metering, metering_bus_free);
    g_clear_pointer(&daemon->agent, agent_free);
    g_main_loop_unref(daemon->loop);
    host_root_unref(daemon->root);
}

static int serve_bus(Daemon *daemon)
{
    guint owner = g_bus_own_name(G_BUS_TYPE_SYSTEM, VGPU_BUS_NAME, G_BUS_NAME_OWNER_FLAGS_NONE,
                                 bus_acquired, NULL, name_lost, daemon, NULL);

    g_unix_signal_add(SIGTERM, end_loop, daemon);
    g_unix_signal_add(SIGINT, end_loop, daemon);
    g_main_loop_run(daemon->loop);
    g_bus_unown_name(owner);
    return daemon->status;
}

/*
 * Answers about a thousand vGPUs are temporary: their memory must not stay with the threads that
 * sent them.
 */
static void give_memory_back(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
    mallopt(M_MMAP_THRESHOLD, TRIM_BYTES);
}

int main(int argc, char **argv)
{
    Daemon daemon = {0};
    g_autofree char *dir = NULL;
    gboolean version = FALSE, take_back = FALSE;
    const GOptionEntry entries[] = {
        {"root", 0, 0, G_OPTION_ARG_FILENAME, &dir, "Use DIR in place of /, for tests", "DIR"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &version, "Print the version and end", NULL},
        {"take-back-access", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &take_back,
         "Take the users' access to GPUs' nodes back and end, for the package's removal", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new("- the host agent for vGPUs");
    g_autoptr(GError) error = NULL;
    int status = EXIT_FAILURE;

    setlocale(LC_ALL, "");
    g_setenv(VGPU_CHECKED_ENV, "1", TRUE);
    give_memory_back();
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        g_printerr("vgpud: %s (see vgpud --help)\n", error->message);
        return 2;
    }
    if (version) {
        puts("vgpud " VGPU_VERSION);
        return EXIT_SUCCESS;
    }
    daemon.root = host_root_new(dir, &error);
    if (!daemon.root) {
        g_printerr("vgpud: --root: %s\n", error->message);
        return 2;
    }
    if (take_back) {
        status = node_access_take_back(daemon.root) ? EXIT_SUCCESS : EXIT_FAILURE;
        host_root_unref(daemon.root);
        return status;
    }
    /* Each user of a slice takes two. */
    program_raise_files();
    daemon.loop = g_main_loop_new(NULL, FALSE);
    if (start_agent(&daemon))
        status = serve_bus(&daemon);
    stop_agent(&daemon);
    return status;
}
