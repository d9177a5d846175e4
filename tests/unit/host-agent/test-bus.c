/* SPDX-License-Identifier: MIT */
/* The agent on the test's private bus, and vgpuctl from a user's view. */
#include <gio/gio.h>
#include <signal.h>
#include <string.h>

#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/recorded_host.h"

#define VGPUCTL AGENT_OUT "/vgpuctl"

static void test_gpu(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    assert_says("gpu list", 0, "0000:02:00.0  shared       amdgpu    16.0 GiB  -     5", "");
    assert_says("gpu list", 0, "0000:03:00.0  passthrough  vfio-pci  16.0 GiB", "");
    assert_says("gpu show 02:00.0", 0, "amdgpu-vgpu-full amdgpu-vgpu-half", "");
    assert_says("gpu show 02:00.0", 0, "Model:                rx-6800-16g\n", "");
    assert_says("-o json gpu show 0000:02:00.0", 0, "\"Vram\" : 17163091968", "");
    assert_says("-o json gpu list", 0, "\"Mode\" : \"passthrough\"", "");
    agent_on_bus_close(&at);
}

/* The describing unit's result is shown, and dropped when the GPU is bound to vfio-pci. */
static void test_vulkan(void)
{
    AgentOnBus at;
    HostRoot *root = recorded_host_new("shared");

    file_tree_write(root, "/run/vgpu/vulkan/0000:02:00.0",
                    "[vulkan]\ndevice=Navi 21\ndriver=radeon.json\napi=1.4.305\n"
                    "exports-memory=true\ncompute-queues=5\nfeatures=fp16;int64;\n");
    agent_on_bus_open_tree(&at, root);
    assert_says("gpu show 02:00.0", 0, "Navi 21 (1.4.305, radeon.json)\n", "");
    assert_says("gpu show 02:00.0", 0, "fp16 int64", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"VulkanComputeQueues\" : 5", "");
    recorded_host_remove(at.root, "0000:02:00.0");
    recorded_host_add(at.root, "pci0000:00/0000:00:09.0/0000:02:00.0 class=0x038000 vendor=0x1002 "
                               "device=0x73bf driver=vfio-pci");
    agent_refresh(at.agent);
    assert_says("-o json gpu show 02:00.0", 0, "\"VulkanDevice\" : \"\"", "");
    agent_on_bus_close(&at);
}

/* A card of NVIDIA's driver without nvidia-drm is described, too. */
static void test_no_vulkan(void)
{
    AgentOnBus at;
    HostRoot *root = recorded_host_new("empty");

    recorded_host_add(root, "pci0000:00/0000:00:09.0/0000:02:00.0 class=0x030200 vendor=0x10de "
                            "device=0x2330 driver=nvidia");
    file_tree_write(root, "/run/vgpu/vulkan/0000:02:00.0",
                    "[vulkan]\nmissing=GPU 0000:02:00.0: it has no render node\n");
    agent_on_bus_open_tree(&at, root);
    assert_says("gpu show 02:00.0", 0,
                "none, vGPUs have CUDA alone: GPU 0000:02:00.0: it has no render node\n", "");
    agent_on_bus_close(&at);
}

#define UUID "c0ffee00-0000-4000-8000-000000000001"

static void test_vgpu(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    assert_says("-o json vgpu list", 0, "[]", "");
    recorded_host_add_vgpu(at.root, "pci0000:00/0000:00:01.0/0000:02:00.0", UUID,
                           "amdgpu-vgpu-half",
                           "state=device=running engine=ready|failure=|vram_bytes=8589934592|"
                           "window_bytes=268435456|weight=100|cap=50|priority=1|requests=12345|"
                           "doorbells=17|interrupts=18|engine_losses=2");
    /* Another vendor's vGPU, without our attributes. */
    file_tree_write(at.root, "/sys/bus/mdev/devices/deadbeef/uevent", "");
    agent_refresh(at.agent);
    assert_says("vgpu list", 0,
                UUID "  0000:02:00.0  amdgpu-vgpu-half  running  ready   8.0 GiB  guaranteed  -",
                "");
    assert_says("vgpu show C0FFEE00-0000-4000-8000-000000000001", 0, "Engines lost:           2",
                "");
    assert_says("vgpu show " UUID, 0, "GPU's engines:          all", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Priority\" : 1", "");
    assert_says("-o json vgpu list", 0, "\"Requests\" : 12345", "");
    assert_says("vgpu show deadbeef", 3, "", "there is no vGPU deadbeef");
    agent_on_bus_close(&at);
}

static void test_type(void)
{
    static const char dir[] = "/sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0/"
                              "mdev_supported_types/amdgpu-vgpu-half/";
    g_autofree char *available = g_strconcat(dir, "available_instances", NULL);
    g_autofree char *description = g_strconcat(dir, "description", NULL);
    g_autofree char *device = g_strconcat(dir, "devices/" UUID, NULL);
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    file_tree_write(at.root, available, "1\n");
    file_tree_write(at.root, description, "Half of it\n");
    file_tree_link(at.root, device, "nowhere");
    assert_says("type list", 0, "0000:02:00.0  amdgpu-vgpu-half  1      1     Half of it", "");
    assert_says("-o json type list", 0, "\"Available\" : 1", "");
    agent_on_bus_close(&at);
    agent_on_bus_open(&at, "laptop");
    assert_says("type list", 0, "No GPU of this host is shared", "");
    agent_on_bus_close(&at);
}

static void test_topo(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "server-8gpu");
    assert_says("topo", 0, "0000:18:00.0  X             PIX           NODE", "");
    assert_says("topo -o json", 0, "\"distances\"", "");
    agent_on_bus_close(&at);
}

static void test_errors(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "empty");
    assert_says("gpu list", 0, "This host has no GPU.", "");
    assert_says("-o json gpu list", 0, "[]", "");
    assert_says("gpu show 0000:99:00.0", 3, "", "no GPU 0000:99:00.0");
    assert_says("gpu show", 2, "", "usage: vgpuctl gpu show GPU");
    assert_says("gpu frobnicate", 2, "", "no command \"gpu frobnicate\"");
    assert_says("", 2, "", "no command");
    assert_says("-o xml gpu list", 2, "",
                "--output cannot be \"xml\": it must be one of table, wide, name, yaml, json");
    assert_says("--bogus", 2, "", "--bogus");
    agent_on_bus_close(&at);
}

static void test_no_agent(void)
{
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", TRUE);
    assert_says("gpu list", 4, "", "cannot reach vgpud");
}

static void line_came(GObject *stream, GAsyncResult *answer, void *data)
{
    (void)stream;
    *(GAsyncResult **)data = g_object_ref(answer);
}

/* The next client sees a GPU that was added, changed or removed. */
static void test_hotplug(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "empty");
    recorded_host_add(at.root, "pci0000:00/0000:00:05.0 class=0x030000 vendor=0x1af4 "
                               "device=0x1050");
    agent_refresh(at.agent);
    assert_says("gpu list", 0, "0000:00:05.0  host  -", "");
    recorded_host_remove(at.root, "0000:00:05.0");
    agent_refresh(at.agent);
    assert_says("gpu list", 0, "This host has no GPU.", "");
    agent_on_bus_close(&at);
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

/* The serial of a call for all objects, and then whether it was answered. */
typedef struct {
    guint asked;
    gint answered;
} Listener;

/* Runs in a thread of the connection. */
static GDBusMessage *see_answer(GDBusConnection *bus, GDBusMessage *message, gboolean incoming,
                                void *data)
{
    Listener *listener = data;

    (void)bus;
    if (incoming && g_strcmp0(g_dbus_message_get_member(message), "GetManagedObjects") == 0)
        listener->asked = g_dbus_message_get_serial(message);
    else if (!incoming && listener->asked &&
             g_dbus_message_get_reply_serial(message) == listener->asked)
        g_atomic_int_set(&listener->answered, 1);
    return message;
}

static gboolean is_answered(gconstpointer data)
{
    return g_atomic_int_get(&((const Listener *)data)->answered);
}

static void test_events(void)
{
    static const char gpu[] = "pci0000:00/0000:00:05.0 class=0x030000 vendor=0x1af4 device=0x1050";
    AgentOnBus at;
    GSubprocess *process;
    GDataInputStream *stream;
    Listener listener = {0};
    guint filter;

    agent_on_bus_open(&at, "empty");
    filter = g_dbus_connection_add_filter(at.bus, see_answer, &listener, NULL);
    process = g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE, NULL, VGPUCTL, "events", NULL);
    g_assert_nonnull(process);
    stream = g_data_input_stream_new(g_subprocess_get_stdout_pipe(process));
    iterate_until(is_answered, &listener);
    g_dbus_connection_remove_filter(at.bus, filter);
    agent_refresh(at.agent);
    recorded_host_add(at.root, gpu);
    agent_refresh(at.agent);
    assert_event(stream, "GPU 0000:00:05.0 added");
    file_tree_link(at.root, "/sys/devices/pci0000:00/0000:00:05.0/driver",
                   "/sys/bus/pci/drivers/vfio-pci");
    agent_refresh(at.agent);
    assert_event(stream, "changed Driver='vfio-pci' Mode='passthrough'");
    recorded_host_remove(at.root, "0000:00:05.0");
    agent_refresh(at.agent);
    assert_event(stream, "GPU 0000:00:05.0 removed");
    g_subprocess_send_signal(process, SIGTERM);
    g_assert_true(g_subprocess_wait_check(process, NULL, NULL));
    g_object_unref(stream);
    g_object_unref(process);
    agent_on_bus_close(&at);
}

/* A second vgpud on the same host must not finish the first one's operations. */
static void test_second(void)
{
    AgentOnBus at;
    g_autoptr(GError) error = NULL;
    g_autoptr(Agent) second = NULL;

    agent_on_bus_open(&at, "shared");
    second = agent_new(at.root, &error);
    g_assert_null(second);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, "another vgpud"));
    agent_on_bus_restart(&at);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/bus/gpu", test_gpu);
    g_test_add_func("/bus/vulkan", test_vulkan);
    g_test_add_func("/bus/no-vulkan", test_no_vulkan);
    g_test_add_func("/bus/vgpu", test_vgpu);
    g_test_add_func("/bus/type", test_type);
    g_test_add_func("/bus/topo", test_topo);
    g_test_add_func("/bus/errors", test_errors);
    g_test_add_func("/bus/hotplug", test_hotplug);
    g_test_add_func("/bus/events", test_events);
    g_test_add_func("/bus/no-agent", test_no_agent);
    g_test_add_func("/bus/second", test_second);
    return g_test_run();
}
