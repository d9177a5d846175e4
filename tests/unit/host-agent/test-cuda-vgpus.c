/* SPDX-License-Identifier: MIT */
/* CUDA of vGPUs: what is shown of it, the driver's links, the window. */
#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/nvidia_kit.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

static void got_answer(GObject *bus, GAsyncResult *result, void *data)
{
    g_autoptr(GError) error = NULL;

    *(GVariant **)data = g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, &error);
    g_assert_no_error(error);
}

static gboolean is_there(gconstpointer data)
{
    return *(GVariant *const *)data != NULL;
}

/* For its engine's workers, on a host that has no slice for containers. */
static void test_vgpu_links(void)
{
    HostRoot *root = nvidia_kit_vgpu_tree();
    AgentOnBus at;

    agent_on_bus_open_tree(&at, root);
    nvidia_kit_assert_link(root, "libcuda.so.1", NULL);
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    nvidia_kit_assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    nvidia_kit_assert_link(root, "libnvidia-ml.so.1",
                           LIBS "/nvidia/current/libnvidia-ml.so." VERSION);
    agent_on_bus_close(&at);
}

/* At boot a vGPU is there before vgpud. */
static void test_vgpu_links_at_start(void)
{
    HostRoot *root = nvidia_kit_vgpu_tree();
    AgentOnBus at;

    recorded_host_add_vgpu(root, "pci0000:00/0000:00:01.0/" ADDRESS, UUID, "nvidia-vgpu-half",
                           VGPU_ATTRIBUTES);
    agent_on_bus_open_tree(&at, root);
    nvidia_kit_assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    agent_on_bus_close(&at);
}

/* Of a type without a word on it; a vGPU that is older than its module has none. */
static void test_vgpu(void)
{
    AgentOnBus at;

    agent_on_bus_open_tree(&at, nvidia_kit_vgpu_tree());
    assert_says("type show half", 0, "CUDA:              yes\n", "");
    assert_says("type show half", 0, "Window:            4.0 GiB\n", "");
    assert_says("type list -o wide", 0, "CUDA", "");
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    assert_says("vgpu show " UUID, 0, "CUDA:                   yes\n", "");
    assert_says("slice create half --door vfio --uuid " UUID2, 0, UUID2, "");
    assert_says("slice show " UUID2, 0, "CUDA:                   yes\n", "");
    assert_says("vgpu remove " UUID, 0, "", "");
    recorded_host_add_vgpu(at.root, "pci0000:00/0000:00:01.0/" ADDRESS, UUID, "nvidia-vgpu-half",
                           VGPU_ATTRIBUTES);
    agent_update_vgpu(at.agent, UUID);
    assert_says("vgpu show " UUID, 0, "CUDA:                   no\n", "");
    assert_says("vgpu show " UUID, 0, "Window:                 256.0 MiB\n", "");
    agent_on_bus_close(&at);
}

static void test_vgpu_alone(void)
{
    HostRoot *root = nvidia_kit_vgpu_tree();
    AgentOnBus at;

    file_tree_write(root, "/run/vgpu/vulkan/" ADDRESS, "[vulkan]\nmissing=it has no render node\n");
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door vfio --uuid " UUID, 0, UUID, "");
    assert_says("slice show " UUID, 0, "CUDA:                   yes, without Vulkan\n", "");
    assert_says("vgpu show " UUID, 0, "CUDA:                   yes, without Vulkan\n", "");
    agent_on_bus_close(&at);
}

/* A VM's room: the type's window becomes smaller, and never larger. */
static guint64 window_with(const char *request)
{
    g_autoptr(GDBusConnection) bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, NULL);
    g_autoptr(GVariant) answer = NULL;
    g_autoptr(GVariant) vgpus = NULL;
    g_autoptr(GVariant) vgpu = NULL;
    guint64 window = 0;

    g_dbus_connection_call(bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, "org.mdev_vgpu.Host1.Manager",
                           "CreateSlices", g_variant_new_parsed(request), NULL,
                           G_DBUS_CALL_FLAGS_NONE, -1, NULL, got_answer, &answer);
    iterate_until(is_there, &answer);
    g_variant_get_child(answer, 0, "@aa{sv}", &vgpus);
    vgpu = g_variant_get_child_value(vgpus, 0);
    g_variant_lookup(vgpu, "Window", "t", &window);
    return window;
}

static void test_window(void)
{
    AgentOnBus at;

    agent_on_bus_open_tree(&at, nvidia_kit_vgpu_tree());
    g_assert_cmpuint(
        window_with("([{'Door': <'vm'>, 'Type': <'half'>, 'WindowMost': <uint64 1073741824>}],)"),
        ==, 1073741824);
    /* What mdevctl does not write is the fake kernel's. */
    g_assert_cmpuint(
        window_with("([{'Door': <'vm'>, 'Type': <'half'>, 'WindowMost': <uint64 8589934592>}],)"),
        ==, 268435456);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda-vgpus/vgpu", test_vgpu);
    g_test_add_func("/cuda-vgpus/window", test_window);
    g_test_add_func("/cuda-vgpus/vgpu-alone", test_vgpu_alone);
    g_test_add_func("/cuda-vgpus/vgpu-links", test_vgpu_links);
    g_test_add_func("/cuda-vgpus/vgpu-links-at-start", test_vgpu_links_at_start);
    return g_test_run();
}
