/* SPDX-License-Identifier: MIT */
/* The agent on a bus of the test's own, and vgpuctl as a user calls it. */
#include <gio/gio.h>
#include <signal.h>
#include <string.h>

#include "bus_names.h"
#include "file_tree.h"
#include "host.h"
#include "recorded_host.h"

#define VGPUCTL AGENT_OUT "/vgpuctl"

struct agent {
    char *root;
    GTestDBus *daemon;
    GDBusConnection *bus;
    Inventory *inventory;
    Host *host;
    guint owner;
};

static void name_acquired(GDBusConnection *bus, const char *name, void *data)
{
    (void)bus;
    (void)name;
    *(gboolean *)data = TRUE;
}

static void agent_open(struct agent *agent, const char *host)
{
    gboolean acquired = FALSE;
    GError *error = NULL;

    agent->root = recorded_host_new(host);
    agent->daemon = g_test_dbus_new(G_TEST_DBUS_NONE);
    g_test_dbus_up(agent->daemon);
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", g_test_dbus_get_bus_address(agent->daemon), TRUE);
    agent->bus =
        g_dbus_connection_new_for_address_sync(g_test_dbus_get_bus_address(agent->daemon),
                                               G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
                                                   G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
                                               NULL, NULL, &error);
    g_assert_no_error(error);
    agent->inventory = inventory_new(agent->root);
    agent->host = host_new(agent->bus, agent->inventory);
    agent->owner =
        g_bus_own_name_on_connection(agent->bus, VGPU_BUS_NAME, G_BUS_NAME_OWNER_FLAGS_NONE,
                                     name_acquired, NULL, &acquired, NULL);
    while (!acquired)
        g_main_context_iteration(NULL, TRUE);
}

static void agent_close(struct agent *agent)
{
    g_bus_unown_name(agent->owner);
    host_free(agent->host);
    inventory_free(agent->inventory);
    g_dbus_connection_close_sync(agent->bus, NULL, NULL);
    g_object_unref(agent->bus);
    g_test_dbus_down(agent->daemon);
    g_object_unref(agent->daemon);
    file_tree_free(agent->root);
}

/* What a command printed, both ways, and its exit status. */
struct result {
    char *out;
    char *err;
    int status;
};

static void ended(GObject *process, GAsyncResult *answer, void *data)
{
    struct result *result = data;

    g_assert_true(g_subprocess_communicate_utf8_finish(G_SUBPROCESS(process), answer, &result->out,
                                                       &result->err, NULL));
    result->status = g_subprocess_get_exit_status(G_SUBPROCESS(process));
}

static struct result vgpuctl(const char *args)
{
    g_autofree char *line = g_strconcat(VGPUCTL " ", args, NULL);
    g_auto(GStrv) argv = NULL;
    g_autoptr(GSubprocess) process = NULL;
    struct result result = {.status = -1};

    g_assert_true(g_shell_parse_argv(line, NULL, &argv, NULL));
    process =
        g_subprocess_newv((const char *const *)argv,
                          G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, NULL);
    g_assert_nonnull(process);
    g_subprocess_communicate_utf8_async(process, NULL, NULL, ended, &result);
    while (result.status < 0)
        g_main_context_iteration(NULL, TRUE);
    return result;
}

static void result_clear(struct result *result)
{
    g_free(result->out);
    g_free(result->err);
}

static void assert_says(const char *args, int status, const char *out, const char *err)
{
    struct result result = vgpuctl(args);

    g_test_message("vgpuctl %s: %d\n%s%s", args, result.status, result.out, result.err);
    g_assert_cmpint(result.status, ==, status);
    g_assert_nonnull(strstr(result.out, out));
    g_assert_nonnull(strstr(result.err, err));
    result_clear(&result);
}

static void test_gpu(void)
{
    struct agent agent;

    agent_open(&agent, "shared");
    assert_says("gpu list", 0, "0000:02:00.0  shared       amdgpu    16.0 GiB  -     5", "");
    assert_says("gpu list", 0, "0000:03:00.0  passthrough  vfio-pci  16.0 GiB", "");
    assert_says("gpu show 02:00.0", 0, "amdgpu-vgpu-full amdgpu-vgpu-half", "");
    assert_says("-o json gpu show 0000:02:00.0", 0, "\"Vram\" : 17163091968", "");
    assert_says("-o json gpu list", 0, "\"Mode\" : \"passthrough\"", "");
    agent_close(&agent);
}

#define UUID "c0ffee00-0000-4000-8000-000000000001"

static void test_vgpu(void)
{
    struct agent agent;

    agent_open(&agent, "shared");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    assert_says("-o json vgpu list", 0, "[]", "");
    recorded_host_add_vgpu(agent.root, "pci0000:00/0000:00:01.0/0000:02:00.0", UUID,
                           "amdgpu-vgpu-half",
                           "state=device=running engine=ready|failure=|vram_bytes=8589934592|"
                           "window_bytes=268435456|weight=100|cap=50|priority=-1|requests=12345|"
                           "doorbells=17|interrupts=18|engine_losses=2");
    /* One of another vendor's, without our attributes. */
    file_tree_write(agent.root, "/sys/bus/mdev/devices/deadbeef/uevent", "");
    assert_says("vgpu list", 0,
                UUID "  0000:02:00.0  amdgpu-vgpu-half  running  ready   8.0 GiB  100     50", "");
    assert_says("vgpu show C0FFEE00-0000-4000-8000-000000000001", 0, "Engines lost:    2", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Priority\" : -1", "");
    assert_says("-o json vgpu list", 0, "\"Requests\" : 12345", "");
    assert_says("vgpu show deadbeef", 3, "", "there is no vGPU deadbeef");
    agent_close(&agent);
}

static void test_type(void)
{
    static const char dir[] = "/sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0/"
                              "mdev_supported_types/amdgpu-vgpu-half/";
    g_autofree char *available = g_strconcat(dir, "available_instances", NULL);
    g_autofree char *description = g_strconcat(dir, "description", NULL);
    g_autofree char *device = g_strconcat(dir, "devices/" UUID, NULL);
    struct agent agent;

    agent_open(&agent, "shared");
    file_tree_write(agent.root, available, "1\n");
    file_tree_write(agent.root, description, "Half of it\n");
    file_tree_link(agent.root, device, "nowhere");
    assert_says("type list", 0, "0000:02:00.0  amdgpu-vgpu-half  1      1     Half of it", "");
    assert_says("-o json type list", 0, "\"Available\" : 1", "");
    agent_close(&agent);
    agent_open(&agent, "laptop");
    assert_says("type list", 0, "No GPU of this host is shared", "");
    agent_close(&agent);
}

static void test_topo(void)
{
    struct agent agent;

    agent_open(&agent, "server-8gpu");
    assert_says("topo", 0, "0000:18:00.0  X             PIX           NODE", "");
    assert_says("topo -o json", 0, "\"distances\"", "");
    agent_close(&agent);
}

static void test_errors(void)
{
    struct agent agent;

    agent_open(&agent, "empty");
    assert_says("gpu list", 0, "This host has no GPU.", "");
    assert_says("-o json gpu list", 0, "[]", "");
    assert_says("gpu show 0000:99:00.0", 3, "", "no GPU 0000:99:00.0");
    assert_says("gpu show", 2, "", "one argument: GPU");
    assert_says("gpu frobnicate", 2, "", "no command \"gpu frobnicate\"");
    assert_says("", 2, "", "no command");
    assert_says("-o yaml gpu list", 2, "", "table or json");
    assert_says("--bogus", 2, "", "--bogus");
    agent_close(&agent);
}

static void test_no_agent(void)
{
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", TRUE);
    assert_says("gpu list", 4, "", "vgpud can't be reached");
}

static void line_came(GObject *stream, GAsyncResult *answer, void *data)
{
    (void)stream;
    *(GAsyncResult **)data = g_object_ref(answer);
}

/* A GPU that comes, changes and goes is seen by who asks next. */
static void test_hotplug(void)
{
    struct agent agent;

    agent_open(&agent, "empty");
    recorded_host_add(agent.root, "pci0000:00/0000:00:05.0 class=0x030000 vendor=0x1af4 "
                                  "device=0x1050");
    host_refresh(agent.host);
    assert_says("gpu list", 0, "0000:00:05.0  host  -", "");
    recorded_host_remove(agent.root, "0000:00:05.0");
    host_refresh(agent.host);
    assert_says("gpu list", 0, "This host has no GPU.", "");
    agent_close(&agent);
}

/* The next line that a running command prints. */
static char *next_line(GDataInputStream *stream)
{
    GAsyncResult *answer = NULL;
    char *line;

    g_data_input_stream_read_line_async(stream, G_PRIORITY_DEFAULT, NULL, line_came, &answer);
    while (!answer)
        g_main_context_iteration(NULL, TRUE);
    line = g_data_input_stream_read_line_finish(stream, answer, NULL, NULL);
    g_object_unref(answer);
    g_assert_nonnull(line);
    return line;
}

static void assert_event(GDataInputStream *stream, const char *words)
{
    g_autofree char *line = next_line(stream);

    g_test_message("%s", line);
    g_assert_nonnull(strstr(line, words));
}

/* Until the command that was started listens: it has asked for all objects then. */
static void wait_until_it_listens(struct agent *agent)
{
    for (guint i = 0; i < 200; i++) {
        g_main_context_iteration(NULL, FALSE);
        g_usleep(5000);
    }
    host_refresh(agent->host);
}

static void test_events(void)
{
    static const char gpu[] = "pci0000:00/0000:00:05.0 class=0x030000 vendor=0x1af4 device=0x1050";
    struct agent agent;
    GSubprocess *process;
    GDataInputStream *stream;

    agent_open(&agent, "empty");
    process = g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE, NULL, VGPUCTL, "events", NULL);
    g_assert_nonnull(process);
    stream = g_data_input_stream_new(g_subprocess_get_stdout_pipe(process));
    wait_until_it_listens(&agent);
    recorded_host_add(agent.root, gpu);
    host_refresh(agent.host);
    assert_event(stream, "GPU 0000:00:05.0 added");
    file_tree_link(agent.root, "/sys/devices/pci0000:00/0000:00:05.0/driver",
                   "/sys/bus/pci/drivers/vfio-pci");
    host_refresh(agent.host);
    assert_event(stream, "changed Driver='vfio-pci' Mode='passthrough'");
    recorded_host_remove(agent.root, "0000:00:05.0");
    host_refresh(agent.host);
    assert_event(stream, "GPU 0000:00:05.0 removed");
    g_subprocess_send_signal(process, SIGTERM);
    g_assert_true(g_subprocess_wait_check(process, NULL, NULL));
    g_object_unref(stream);
    g_object_unref(process);
    agent_close(&agent);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/bus/gpu", test_gpu);
    g_test_add_func("/bus/vgpu", test_vgpu);
    g_test_add_func("/bus/type", test_type);
    g_test_add_func("/bus/topo", test_topo);
    g_test_add_func("/bus/errors", test_errors);
    g_test_add_func("/bus/hotplug", test_hotplug);
    g_test_add_func("/bus/events", test_events);
    g_test_add_func("/bus/no-agent", test_no_agent);
    return g_test_run();
}
