/* SPDX-License-Identifier: MIT */
/* vgpu-meter(8): counts and watches for vgpud, which decides. */
#include <gio/gio.h>
#include <glib-unix.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "host-agent/meter/agent_bus.h"
#include "lib/program.h"

#define TRIM_BYTES (128 * 1024)

/**
 * Process
 * @status: exit status
 */
typedef struct {
    GMainLoop *loop;
    int status;
} Process;

static void end_with_error(const char *why, void *data)
{
    Process *process = data;

    g_printerr("vgpu-meter: %s\n", why);
    process->status = EXIT_FAILURE;
    g_main_loop_quit(process->loop);
}

static gboolean end_loop(void *data)
{
    const Process *process = data;

    g_main_loop_quit(process->loop);
    return G_SOURCE_CONTINUE;
}

static int serve_agent(HostRoot *root)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GDBusConnection) bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, &error);
    Process process = {.status = EXIT_SUCCESS};
    AgentBus *agent;

    if (!bus) {
        g_printerr("vgpu-meter: cannot connect to D-Bus; is dbus.service running? %s\n",
                   error->message);
        return EXIT_FAILURE;
    }
    process.loop = g_main_loop_new(NULL, FALSE);
    agent = agent_bus_new(root, bus, end_with_error, &process);
    g_unix_signal_add(SIGTERM, end_loop, &process);
    g_unix_signal_add(SIGINT, end_loop, &process);
    g_main_loop_run(process.loop);
    agent_bus_free(agent);
    g_main_loop_unref(process.loop);
    return process.status;
}

/* The text about a thousand vGPUs is temporary. */
static void give_memory_back(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
    mallopt(M_MMAP_THRESHOLD, TRIM_BYTES);
}

int main(int argc, char **argv)
{
    g_autofree char *dir = NULL;
    gboolean version = FALSE;
    const GOptionEntry entries[] = {
        {"root", 0, 0, G_OPTION_ARG_FILENAME, &dir, "Use DIR in place of /, for tests", "DIR"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &version, "Print the version and end", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new("- counts and watches for vgpud");
    g_autoptr(GError) error = NULL;
    g_autoptr(HostRoot) root = NULL;

    setlocale(LC_ALL, "");
    give_memory_back();
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        g_printerr("vgpu-meter: %s (see vgpu-meter --help)\n", error->message);
        return 2;
    }
    if (version) {
        puts("vgpu-meter " VGPU_VERSION);
        return EXIT_SUCCESS;
    }
    root = host_root_new(dir, &error);
    if (!root) {
        g_printerr("vgpu-meter: --root: %s\n", error->message);
        return 2;
    }
    program_raise_files();
    return serve_agent(root);
}
