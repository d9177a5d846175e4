/* SPDX-License-Identifier: MIT */
/* vgpu-kubelet: a host's cards for the kubelet that runs on it. vgpu-kubelet(8). */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <glib-unix.h>

#include "fleet/kubernetes/agent.h"
#include "fleet/kubernetes/conf.h"
#include "fleet/kubernetes/dra/driver.h"
#include "fleet/kubernetes/plugin/former.h"
#include "fleet/kubernetes/plugin/plugin.h"

#define EXIT_CONFIG 4

/**
 * Program
 * @plugins: of Plugin, in the order of the configuration's seats
 * @former: seats of an earlier configuration
 * @driver: NULL: the configuration has no API
 * @folder: watches the kubelet's folder of sockets; NULL: it could not be made
 */
typedef struct {
    KubeConf *conf;
    GMainLoop *loop;
    Http *http;
    Agent *agent;
    GPtrArray *plugins;
    Former *former;
    Api *api;
    Driver *driver;
    GFileMonitor *folder;
} Program;

static gboolean on_second(void *data)
{
    Program *program = data;

    for (guint i = 0; i < program->plugins->len; i++)
        plugin_check(program->plugins->pdata[i]);
    former_check(program->former);
    if (program->driver)
        driver_check(program->driver);
    return G_SOURCE_CONTINUE;
}

/* A card is cut into seats, or it is a device of the driver. */
static void on_gpus(void *data)
{
    Program *program = data;
    const GPtrArray *gpus = agent_gpus(program->agent);
    g_autoptr(GPtrArray) whole = g_ptr_array_new();

    for (guint i = 0; i < gpus->len; i++)
        if (!kube_conf_seats(program->conf, ((AgentGpu *)gpus->pdata[i])->model))
            g_ptr_array_add(whole, gpus->pdata[i]);
    for (guint k = 0; k < program->plugins->len; k++) {
        const Seats *seats = program->conf->seats->pdata[k];
        g_autoptr(GPtrArray) cut = g_ptr_array_new();

        for (guint i = 0; i < gpus->len; i++)
            if (kube_conf_seats(program->conf, ((AgentGpu *)gpus->pdata[i])->model) == seats)
                g_ptr_array_add(cut, gpus->pdata[i]);
        plugin_set_gpus(program->plugins->pdata[k], cut);
    }
    former_set_gpus(program->former, whole);
    if (program->driver)
        driver_set_gpus(program->driver, whole);
    on_second(program);
}

/* Most restarts of a kubelet are seen at once; those after which the folder is another, each
 * second. */
static void watch_folder(Program *program)
{
    g_autofree char *path = g_build_filename(program->conf->kubelet, "device-plugins", NULL);
    g_autoptr(GFile) file = g_file_new_for_path(path);

    if (!program->plugins->len || g_mkdir_with_parents(path, 0750))
        return;
    program->folder = g_file_monitor_directory(file, G_FILE_MONITOR_NONE, NULL, NULL);
    if (program->folder)
        g_signal_connect_swapped(program->folder, "changed", G_CALLBACK(on_second), program);
}

static gboolean on_signal(void *data)
{
    g_main_loop_quit(((Program *)data)->loop);
    return G_SOURCE_CONTINUE;
}

static void program_start(Program *program, GDBusConnection *bus)
{
    program->http = http_new();
    program->agent = agent_new(bus, on_gpus, program);
    program->plugins = g_ptr_array_new_with_free_func((GDestroyNotify)plugin_free);
    for (guint i = 0; i < program->conf->seats->len; i++)
        g_ptr_array_add(program->plugins, plugin_new(program->conf, program->conf->seats->pdata[i],
                                                     program->agent, program->http));
    program->former = former_new(program->conf, program->agent);
    watch_folder(program);
    if (!program->conf->url)
        return;
    program->api = api_new(program->http, program->conf);
    program->driver = driver_new(program->conf, program->agent, program->api);
}

/* What is asked of vgpud and the API first, because its answers would find nobody. */
static void program_stop(Program *program)
{
    g_clear_object(&program->folder);
    g_clear_pointer(&program->driver, driver_free);
    g_clear_pointer(&program->plugins, g_ptr_array_unref);
    g_clear_pointer(&program->agent, agent_free);
    g_clear_pointer(&program->former, former_free);
    g_clear_pointer(&program->http, http_free);
    g_clear_pointer(&program->api, api_free);
    kube_conf_free(program->conf);
    g_main_loop_unref(program->loop);
}

int main(int argc, char **argv)
{
    gboolean is_check = argc == 2 && g_str_equal(argv[1], "--check");
    g_autoptr(GDBusConnection) bus = NULL;
    g_autoptr(HostRoot) root = NULL;
    g_autoptr(GError) error = NULL;
    Program program = {0};
    int status = EXIT_SUCCESS;

    setlocale(LC_ALL, "");
    if (argc == 2 && g_str_equal(argv[1], "--version")) {
        puts("vgpu-kubelet " VGPU_VERSION);
        return EXIT_SUCCESS;
    }
    if (argc > 1 && !is_check) {
        fputs("usage: vgpu-kubelet [--check | --version]\n", stderr);
        return 2;
    }
    root = host_root_new(g_getenv("VGPU_ROOT"), &error);
    program.conf = root ? kube_conf_read(root, &error) : NULL;
    if (!program.conf || is_check) {
        fprintf(program.conf ? stdout : stderr, "vgpu-kubelet: %s\n",
                program.conf ? "the configuration is right" : error->message);
        return program.conf ? EXIT_SUCCESS : EXIT_CONFIG;
    }
    program.loop = g_main_loop_new(NULL, FALSE);
    bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, &error);
    if (bus) {
        program_start(&program, bus);
        g_unix_signal_add(SIGTERM, on_signal, &program);
        g_unix_signal_add(SIGINT, on_signal, &program);
        g_timeout_add_seconds(1, on_second, &program);
        g_main_loop_run(program.loop);
    } else {
        fprintf(stderr, "vgpu-kubelet: %s\n", error->message);
        status = EXIT_FAILURE;
    }
    program_stop(&program);
    return status;
}
