/* SPDX-License-Identifier: MIT */
/*
 * page-host TREE: vgpud as the page's test has it. All of the daemon but its main(), on the system
 * bus of the environment, over a file tree that stands for / and over the unit tests' fake kernel.
 * A TREE that does not exist is made from the file "host" beside this one. Prints "ready" when
 * vgpud has its name on the bus. SIGTERM ends it; the tree stays, and can be used again.
 */
#include <gio/gio.h>
#include <glib-unix.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>

#include "host-agent/daemon/agent.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"

static const char types[] = "[type vgpu-full]\nvram=1/1\nweight=800\n"
                            "[type vgpu-half]\nvram=1/2\nweight=400\n"
                            "[type vgpu-quarter]\nvram=1/4\nweight=200\n"
                            "[type vgpu-eighth]\nvram=1/8\nweight=100\n";

static const char gpus[] = "[gpu 0000:02:00.0]\nmode=shared\n"
                           "[gpu 0000:03:00.0]\nmode=shared\novercommit=1.5\n"
                           "[gpu 0000:04:00.0]\nmode=passthrough\n"
                           "[gpu 0000:06:00.0]\nmode=shared\n";

static const char schedule[] = "[at morning]\ngpu=0000:02:00.0\nmode=shared\nat=07:00\n";

/* vgpud asks for the user of a guarded slice by this program. */
static void add_user_program(HostRoot *root)
{
    static const char path[] = "/usr/lib/mdev-vgpu/vgpu-engine-user";
    g_autofree char *full = root_path(root, path, NULL);

    file_tree_write(root, path, "#!/bin/sh\n");
    g_assert_cmpint(g_chmod(full, 0755), ==, 0);
}

static void add_devices(HostRoot *root)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    g_assert_true(g_file_get_contents(PAGE_TESTS "/host", &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++)
        if (lines[i][0] && lines[i][0] != '#')
            recorded_host_add(root, lines[i]);
}

/* The last GPU of the file is too hot. */
static void heat_last_gpu(HostRoot *root)
{
    static const char sensor[] = "/sys/devices/pci0000:00/0000:00:05.0/0000:06:00.0/hwmon/hwmon3";
    g_autofree char *input = g_strconcat(sensor, "/temp1_input", NULL);
    g_autofree char *limit = g_strconcat(sensor, "/temp1_crit", NULL);

    file_tree_write(root, input, "112000\n");
    file_tree_write(root, limit, "100000\n");
}

static void make_tree(HostRoot *root)
{
    add_devices(root);
    heat_last_gpu(root);
    add_user_program(root);
    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    file_tree_write(root, "/etc/vgpu/gpus.conf", gpus);
    file_tree_write(root, "/etc/vgpu/schedule.conf", schedule);
    file_tree_write(root, "/etc/vgpu/vgpud.conf", "[metrics]\nlisten=off\n");
    file_tree_write(root, "/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json",
                    "{\"layer\": {\"library_path\": \"/usr/lib/libvgpu_governor.so\"}}");
}

static void name_acquired(GDBusConnection *bus, const char *name, void *data)
{
    (void)bus;
    (void)name;
    (void)data;
    puts("ready");
    fflush(stdout);
}

static void name_lost(GDBusConnection *bus, const char *name, void *data)
{
    (void)bus;
    (void)data;
    g_error("page-host can't have the name %s on this bus", name);
}

static gboolean end(void *data)
{
    g_main_loop_quit(data);
    return G_SOURCE_CONTINUE;
}

static void serve(HostRoot *root)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(GError) error = NULL;
    g_autoptr(GDBusConnection) bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, &error);
    g_autoptr(Agent) agent = NULL;
    AgentOnBus at;
    guint owner;

    g_assert_no_error(error);
    agent = agent_new(root, &error);
    g_assert_no_error(error);
    agent_export(agent, bus);
    at = (AgentOnBus){.root = root, .bus = bus, .agent = agent};
    agent_on_bus_start_meter(&at);
    owner = g_bus_own_name_on_connection(bus, VGPU_BUS_NAME, G_BUS_NAME_OWNER_FLAGS_NONE,
                                         name_acquired, name_lost, NULL, NULL);
    g_unix_signal_add(SIGTERM, end, loop);
    g_main_loop_run(loop);
    agent_on_bus_stop_meter(&at);
    g_bus_unown_name(owner);
}

int main(int argc, char **argv)
{
    g_autoptr(HostRoot) root = NULL;
    gboolean new;
    g_autofree char *path = g_strconcat(AGENT_TEST_BIN ":", g_getenv("PATH"), NULL);

    if (argc != 2 || argv[1][0] != '/') {
        g_printerr("usage: page-host TREE, an absolute path\n");
        return 2;
    }
    g_setenv("PATH", path, TRUE);
    g_setenv("FAKE_ROOT", argv[1], TRUE);
    new = g_mkdir(argv[1], 0755) == 0;
    root = host_root_new(argv[1], NULL);
    g_assert_nonnull(root);
    if (new)
        make_tree(root);
    fake_kernel_use(root);
    serve(root);
    return EXIT_SUCCESS;
}
