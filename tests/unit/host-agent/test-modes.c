/* SPDX-License-Identifier: MIT */
/* A GPU's modes: every switch there and back, and users of the GPU. */
#include <gio/gio.h>
#include <string.h>

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/modes/reconcile.h"
#include "host-agent/store/tables.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/mode_host.h"

static void set_device(HostRoot *root, const char *device)
{
    g_autofree char *text = g_strdup_printf("device=%s engine=ready\n", device);

    file_tree_write(root, "/sys/devices/" GPU_PATH "/" UUID "/vgpu/state", text);
}

static void assert_there_and_back(AgentOnBus *at, const char *mode, GpuMode expected)
{
    g_autofree char *there = g_strdup_printf("gpu mode 02:00.0 %s", mode);
    g_autofree char *said = g_strdup_printf("\"Mode\" : \"%s\"", mode);
    g_autofree char *wanted = g_strdup_printf("\"WantedMode\" : \"%s\"", mode);

    assert_says(there, 0, "unregistered from the vGPU driver", "");
    assert_mode(at->root, GPU, expected);
    assert_wanted(at->root, GPU, mode);
    assert_says("-o json gpu show " GPU, 0, said, "");
    assert_says("-o json gpu show " GPU, 0, wanted, "");
    assert_says("gpu mode 02:00.0 shared", 0, "GPU " GPU " is registered with the vGPU driver", "");
    assert_mode(at->root, GPU, GPU_MODE_SHARED);
    assert_wanted(at->root, GPU, "shared");
    assert_journal_empty(at);
}

static void test_there_and_back(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    assert_there_and_back(&at, "passthrough", GPU_MODE_PASSTHROUGH);
    assert_done("drain " GPU "\n"
                "remove " GPU "\n"
                "run systemctl start modprobe@vfio_pci.service\n"
                "write /sys/devices/" GPU_PATH "/driver_override vfio-pci\n"
                "write /sys/bus/pci/drivers/amdgpu/unbind " GPU "\n"
                "write /sys/bus/pci/drivers_probe " GPU "\n");
    assert_done("driver_override \nwrite /sys/bus/pci/drivers/vfio-pci/unbind " GPU "\n"
                "write /sys/bus/pci/drivers_probe " GPU "\nadd " GPU "\n");
    assert_there_and_back(&at, "host", GPU_MODE_HOST);
    assert_says("gpu mode " GPU " shared", 0, "GPU " GPU " is shared already", "");
    agent_on_bus_close(&at);
}

/* A vGPU that mdevctl has defined, and no VM uses, is stopped, and comes back. */
static void test_idle_vgpu(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "closed");
    file_tree_write(at.root, DEFINITION, "{}");
    assert_says("gpu mode " GPU " passthrough", 0, "vGPU " UUID " is stopped", "");
    assert_done("write /sys/bus/mdev/devices/" UUID "/remove 1\nremove " GPU);
    agent_on_bus_restart(&at);
    assert_says("gpu mode " GPU " shared", 0, "vGPU " UUID " is started again", "");
    assert_done("add " GPU "\nrun mdevctl start --uuid " UUID "\n");
    assert_says("gpu users " GPU, 0, "no VM has vGPU " UUID "\n", "");
    agent_on_bus_close(&at);
}

static void test_in_the_way(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "running");
    fake_process(at.root, 5000201, "Xorg", NULL, NULL, "dri/card0");
    fake_process(at.root, 5000202, "vgpu-engine", NULL,
                 "0::/system.slice/system-vgpu\\x2dengine.slice/vgpu-engine@" UUID ".service\n",
                 "dri/renderD128");
    fake_process(at.root, 5000203, "qemu", NULL,
                 "0::/machine.slice/machine-qemu\\x2d3\\x2dblue\\x2done.scope/libvirt/vcpu0\n",
                 "dri/renderD128");
    fake_process(at.root, 5000204, "vgpu-engine", NULL,
                 "0::/system.slice/system-vgpu\\x2ddescribe.slice/vgpu-describe@" GPU ".service\n",
                 "dri/renderD128");
    file_tree_write(at.root, "/sys/devices/" GPU_PATH "/drm/card0/uevent",
                    "MAJOR=226\nDEVNAME=dri/card0\n");
    file_tree_write(at.root, "/sys/devices/" GPU_PATH "/drm/renderD128/uevent",
                    "DEVNAME=dri/renderD128\n");
    assert_says("gpu mode " GPU " passthrough", IN_USE, "", VGPU_IN_USE);
    assert_says("gpu mode " GPU " passthrough", IN_USE, "",
                "process 5000201 (Xorg) has /dev/dri/card0 of " GPU " open");
    assert_says("gpu mode " GPU " passthrough", IN_USE, "",
                "VM blue-one (process 5000203, qemu) has /dev/dri/renderD128");
    /* An engine counts as its vGPU. */
    Said said = vgpuctl("gpu mode " GPU " passthrough");
    g_assert_null(strstr(said.err, "process 5000202"));
    g_assert_null(strstr(said.err, "process 5000204"));
    said_clear(&said);
    /* A driver that stays bound does not affect the host's programs. */
    set_device(at.root, "closed");
    fake_process_closes(at.root, 5000202);
    fake_process_closes(at.root, 5000204);
    file_tree_write(at.root, DEFINITION, "{}");
    assert_says("gpu mode " GPU " host", 0, "is stopped", "");
    assert_mode(at.root, GPU, GPU_MODE_HOST);
    agent_on_bus_close(&at);
}

/* Anybody can name a unit of the user's systemd, or a cgroup in a container, like an engine's. */
static void test_own_name(void)
{
    static const char *const cgroups[] = {
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vgpu-engine@" UUID ".service\n",
        "0::/system.slice/docker-1.scope/system.slice/system-vgpu\\x2dengine.slice/"
        "vgpu-engine@" UUID ".service\n",
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vgpu-guard@x.service\n",
        "0::/user.slice/user-1000.slice/user@1000.service/vgpu-nvidia-readings.service\n",
        "0::/system.slice/vgpu-nvidia-readings.service.scope\n",
    };
    AgentOnBus at;

    mode_host_open(&at, "shared");
    file_tree_write(at.root, "/sys/devices/" GPU_PATH "/drm/renderD128/uevent",
                    "DEVNAME=dri/renderD128\n");
    for (guint i = 0; i < G_N_ELEMENTS(cgroups); i++)
        fake_process(at.root, 5000600 + i, "trainer", NULL, cgroups[i], "dri/renderD128");
    for (guint i = 0; i < G_N_ELEMENTS(cgroups); i++) {
        g_autofree char *expected = g_strdup_printf("process %u (trainer) has", 5000600 + i);

        assert_says("gpu mode " GPU " passthrough", IN_USE, "", expected);
    }
    agent_on_bus_close(&at);
}

/* Refused: everything is restored, and new users are accepted again. */
static void test_refused_is_undone(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "closed");
    assert_says("gpu mode " GPU " passthrough", IN_USE, "",
                "vGPU " UUID " has no definition, so it would be lost; define it");
    assert_done("drain " GPU "\nresume " GPU "\n");
    assert_not_done("remove");
    g_assert_false(fake_kernel_drained(GPU));
    assert_mode(at.root, GPU, GPU_MODE_SHARED);
    assert_wanted(at.root, GPU, "shared");
    assert_journal_empty(&at);
    agent_on_bus_close(&at);
}

static void test_dry_run(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "running");
    assert_says("gpu mode --dry-run " GPU " passthrough", 0,
                "it must wait until it is no longer in use: " VGPU_IN_USE "\n", "");
    assert_says("-o json gpu mode --dry-run " GPU " passthrough", 0,
                "\"GPU " GPU " goes to vfio-pci\"", "");
    assert_not_done(GPU);
    assert_mode(at.root, GPU, GPU_MODE_SHARED);
    assert_wanted(at.root, GPU, "shared");
    agent_on_bus_close(&at);
}

static void let_go(HostRoot *root)
{
    g_assert_true(fake_kernel_drained(GPU));
    set_device(root, "closed");
    fake_process_closes(root, 5000200);
}

/* vgpud reports the users that it waits for. */
static void waits(GDBusConnection *bus, const char *sender, const char *path, const char *interface,
                  const char *name, GVariant *parameters, void *root)
{
    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    (void)name;
    (void)parameters;
    let_go(root);
}

/* A bystander on the bus. */
static void overhear(GDBusConnection *bus, const char *sender, const char *path,
                     const char *interface, const char *name, GVariant *parameters, void *heard)
{
    const char *step;

    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    (void)name;
    g_variant_get(parameters, "(&s)", &step);
    g_string_append_printf(heard, "%s\n", step);
}

static void test_drain(void)
{
    g_autoptr(GString) heard = g_string_new(NULL);
    AgentOnBus at;
    guint subscription, bystander;

    mode_host_open(&at, "shared");
    bystander = g_dbus_connection_signal_subscribe(at.bus, NULL, "org.mdev_vgpu.Host1.Gpu",
                                                   "Progress", NULL, NULL, G_DBUS_SIGNAL_FLAGS_NONE,
                                                   overhear, heard, NULL);
    mode_host_add_vgpu(at.root, "running");
    file_tree_write(at.root, DEFINITION, "{}");
    subscription = g_dbus_connection_signal_subscribe(
        at.bus, NULL, NULL, "Event", NULL, "drain", G_DBUS_SIGNAL_FLAGS_NONE, waits, at.root, NULL);
    assert_says("gpu mode --drain --timeout 600 " GPU " passthrough", 0,
                "GPU " GPU " waits until it is no longer in use: " VGPU_IN_USE "\nvGPU " UUID
                " is stopped",
                "");
    iterate_until_said(heard, "is stopped");
    g_assert_null(strstr(heard->str, VGPU_IN_USE));
    g_dbus_connection_signal_unsubscribe(at.bus, bystander);
    g_dbus_connection_signal_unsubscribe(at.bus, subscription);
    assert_mode(at.root, GPU, GPU_MODE_PASSTHROUGH);
    agent_on_bus_close(&at);
}

static void test_drain_timeout(void)
{
    gint64 begin = g_get_monotonic_time();
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "running");
    assert_says("gpu mode --drain --timeout 2 " GPU " passthrough", IN_USE, "waits until",
                "the timeout is over: GPU " GPU
                " can't be switched to passthrough while it is in use:\n  " VGPU_IN_USE);
    g_assert_cmpint(g_get_monotonic_time() - begin, >=, 2 * G_USEC_PER_SEC);
    g_assert_false(fake_kernel_drained(GPU));
    assert_mode(at.root, GPU, GPU_MODE_SHARED);
    assert_wanted(at.root, GPU, "shared");
    assert_journal_empty(&at);
    assert_says("gpu mode --timeout 2 " GPU " host", 2, "", "--timeout needs --drain");
    agent_on_bus_close(&at);
}

static void open_gpu(HostRoot *root)
{
    fake_process(root, 5000201, "Xorg", NULL, NULL, "dri/renderD128");
}

/* Its users have been looked for, and its vGPU is stopped, when a process opens the GPU. */
static void open_contested(AgentOnBus *at)
{
    mode_host_open(at, "shared");
    mode_host_add_vgpu(at->root, "closed");
    file_tree_write(at->root, DEFINITION, "{}");
    mode_host_add_render_node(at->root);
    fake_kernel_then("remove " GPU, open_gpu);
}

/* What a switch that waits may leave behind, whatever ends it. */
static void assert_unchanged(HostRoot *root)
{
    assert_mode(root, GPU, GPU_MODE_SHARED);
    assert_wanted(root, GPU, "shared");
    g_assert_true(root_has(root, "/sys/bus/mdev/devices/" UUID));
}

static void test_taken_timeout(void)
{
    AgentOnBus at;

    open_contested(&at);
    assert_says("gpu mode --drain --timeout 2 " GPU " passthrough", IN_USE,
                "GPU " GPU " is in use again; reverting to shared until it is not\n",
                "the timeout is over");
    assert_unchanged(at.root);
    g_assert_false(fake_kernel_drained(GPU));
    assert_journal_empty(&at);
    agent_on_bus_close(&at);
}

static void waits_again(GDBusConnection *bus, const char *sender, const char *path,
                        const char *interface, const char *name, GVariant *parameters, void *root)
{
    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    (void)name;
    (void)parameters;
    assert_unchanged(root);
    g_assert_true(fake_kernel_drained(GPU));
    fake_process_closes(root, 5000201);
}

static void test_taken_waits(void)
{
    AgentOnBus at;
    guint subscription;

    open_contested(&at);
    subscription =
        g_dbus_connection_signal_subscribe(at.bus, NULL, NULL, "Event", NULL, "drain",
                                           G_DBUS_SIGNAL_FLAGS_NONE, waits_again, at.root, NULL);
    assert_says("gpu mode --drain --timeout 600 " GPU " passthrough", 0, "waits until", "");
    g_dbus_connection_signal_unsubscribe(at.bus, subscription);
    assert_mode(at.root, GPU, GPU_MODE_PASSTHROUGH);
    assert_wanted(at.root, GPU, "passthrough");
    assert_says("gpu mode " GPU " shared", 0, "vGPU " UUID " is started again", "");
    agent_on_bus_close(&at);
}

static void got_answer(GObject *bus, GAsyncResult *answer, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), answer, &error);

    g_assert_null(result);
    *(char **)data = g_strdup(error->message);
}

/* The call's error. */
static char *call(const AgentOnBus *at, const char *address, const char *mode, const char *options)
{
    g_autofree char *path = gpu_object_path(address);
    char *message = NULL;

    g_dbus_connection_call(at->bus, g_dbus_connection_get_unique_name(at->bus), path,
                           "org.mdev_vgpu.Host1.Gpu", "SetMode",
                           g_variant_new("(s@a{sv})", mode, g_variant_new_parsed(options)), NULL,
                           G_DBUS_CALL_FLAGS_NONE, -1, NULL, got_answer, &message);
    while (!message)
        g_main_context_iteration(NULL, TRUE);
    return message;
}

static void assert_call_fails(const AgentOnBus *at, const char *mode, const char *options,
                              const char *expected)
{
    g_autofree char *message = call(at, GPU, mode, options);

    if (!strstr(message, expected))
        g_error("SetMode %s %s: %s", mode, options, message);
}

static void test_bad_arguments(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    assert_call_fails(&at, "", "@a{sv} {}", "there is no mode \"\"");
    assert_call_fails(&at, "Shared", "@a{sv} {}", "there is no mode \"Shared\"");
    assert_call_fails(&at, "host", "{'Drian': <true>}", "unknown key Drian; allowed are: Drain, ");
    assert_call_fails(&at, "host", "{'Drain': <'yes'>}", "Drain must be of the D-Bus type \"b\"");
    assert_call_fails(&at, "host", "{'Timeout': <-1>}", "Timeout must be of the D-Bus type \"u\"");
    assert_call_fails(&at, "host", "{'Partitions': <uint32 2>}", "is for mode partitioned only");
    assert_call_fails(&at, "partitioned", "@a{sv} {}", "has no SR-IOV virtual functions");
    assert_not_done("remove");
    agent_on_bus_close(&at);
}

static void test_one_at_a_time(void)
{
    AgentOnBus at;
    Said said;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "running");
    file_tree_write(at.root, DEFINITION, "{}");
    /* Two calls, of which the first waits. */
    g_autoptr(GSubprocess) first =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_SILENCE, NULL, AGENT_OUT "/vgpuctl", "gpu",
                         "mode", "--drain", GPU, "host", NULL);
    VgpuGpu *gpu = host_gpu_interface(agent_host(at.agent), GPU);
    while (!*vgpu_gpu_get_switching(gpu))
        g_main_context_iteration(NULL, TRUE);
    g_assert_true(vgpu_gpu_get_draining(gpu));
    said = vgpuctl("gpu mode " GPU " passthrough");
    g_assert_cmpint(said.status, ==, IN_USE);
    g_assert_nonnull(strstr(said.err, "is being switched to host just now; wait for that"));
    said_clear(&said);
    let_go(at.root);
    wait_until_settled(&at, GPU);
    assert_mode(at.root, GPU, GPU_MODE_HOST);
    g_assert_false(vgpu_gpu_get_draining(gpu));
    agent_on_bus_close(&at);
}

static void test_cancelled(void)
{
    AgentOnBus at;
    VgpuGpu *gpu;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "running");
    g_autoptr(GSubprocess) first =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_SILENCE,
                         NULL, AGENT_OUT "/vgpuctl", "gpu", "mode", "--drain", GPU, "host", NULL);
    gpu = host_gpu_interface(agent_host(at.agent), GPU);
    while (!*vgpu_gpu_get_switching(gpu))
        g_main_context_iteration(NULL, TRUE);
    assert_says("gpu resume " GPU, 0, "", "");
    wait_until_settled(&at, GPU);
    g_assert_true(g_subprocess_wait(first, NULL, NULL));
    g_assert_cmpint(g_subprocess_get_exit_status(first), ==, IN_USE);
    assert_mode(at.root, GPU, GPU_MODE_SHARED);
    g_assert_false(fake_kernel_drained(GPU));
    assert_journal_empty(&at);
    agent_on_bus_close(&at);
}

/* vfio-pci does not accept it: everything is restored, vGPU included. */
static void test_undone(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "closed");
    file_tree_write(at.root, DEFINITION, "{}");
    fake_kernel_refuse("amdgpu/unbind");
    assert_says("gpu mode " GPU " passthrough", 1, "switch failed; reverting to shared",
                "refused by the test");
    assert_mode(at.root, GPU, GPU_MODE_SHARED);
    assert_wanted(at.root, GPU, "shared");
    assert_done("run mdevctl start --uuid " UUID);
    assert_journal_empty(&at);
    agent_on_bus_close(&at);
}

#define CARD "0000:65:00.0"

static void test_partitions(void)
{
    AgentOnBus at;

    mode_host_open(&at, "sriov-card");
    fake_process(at.root, 5000400, "qemu", "blue", NULL, "vfio/43");
    file_tree_link(at.root, "/sys/devices/pci0000:64/0000:64:02.0/" CARD "/virtfn0",
                   "../0000:65:00.1");
    file_tree_link(at.root, "/sys/devices/pci0000:64/0000:64:02.0/" CARD "/virtfn1",
                   "../0000:65:00.2");
    assert_says("gpu mode " CARD " host", IN_USE, "",
                "VM blue (process 5000400, qemu) has /dev/vfio/43 of 0000:65:00.2 open");
    fake_process_closes(at.root, 5000400);
    assert_says("gpu mode " CARD " host", 0, "its partitions (SR-IOV) are removed", "");
    assert_mode(at.root, CARD, GPU_MODE_HOST);
    assert_says("gpu mode --partitions 32 " CARD " partitioned", 2, "",
                "can have 31 partitions (SR-IOV), not 32");
    assert_not_done("sriov_numvfs 32");
    assert_says("gpu mode --partitions 4 " CARD " partitioned", 0, "by SR-IOV: 4", "");
    assert_done("sriov_drivers_autoprobe 0\nwrite /sys/devices/pci0000:64/0000:64:02.0/" CARD
                "/sriov_numvfs 4\n");
    assert_says("-o json gpu show " CARD, 0, "\"0000:65:00.4\"", "");
    assert_says("gpu mode --partitions 2 " CARD " partitioned", 0, "by SR-IOV: 2", "");
    assert_done("sriov_numvfs 0\nwrite");
    assert_wanted(at.root, CARD, "partitioned");
    agent_on_bus_close(&at);
}

/* Functions that others make later get the host's drivers again. */
static void test_autoprobe(void)
{
    AgentOnBus at;

    mode_host_open(&at, "sriov-card");
    assert_says("gpu mode --partitions 4 " CARD " partitioned", 0, "by SR-IOV: 4", "");
    assert_says("gpu mode " CARD " host", 0, "are removed", "");
    assert_done("sriov_numvfs 0\nwrite /sys/devices/pci0000:64/0000:64:02.0/" CARD
                "/sriov_drivers_autoprobe 1\n");
    fake_kernel_refuse("/sriov_numvfs");
    assert_says("gpu mode --partitions 4 " CARD " partitioned", 1, "", "refused by the test");
    assert_done("sriov_drivers_autoprobe 0\nwrite /sys/devices/pci0000:64/0000:64:02.0/" CARD
                "/sriov_drivers_autoprobe 1\n");
    agent_on_bus_close(&at);
}

static void test_no_iommu(void)
{
    AgentOnBus at;

    mode_host_open(&at, "empty");
    file_tree_write(at.root, "/etc/vgpu/gpus.conf", "[gpu 0000:00:03.0]\nmode=host\n");
    agent_refresh(at.agent);
    assert_says("gpu mode 00:03.0 passthrough", 2, "", "the host has no IOMMU, or it is off");
    assert_wanted(at.root, "0000:00:03.0", "host");
    g_autofree char *state = root_path(at.root, GPUS_STATE, NULL);
    g_assert_false(g_file_test(state, G_FILE_TEST_EXISTS));
    agent_on_bus_close(&at);
}

/* No process may take the GPU between the look and the switch: VFIO's group is held. */
static void test_group_is_taken(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    fake_process(at.root, 5000500, "qemu", "red", NULL, "vfio/6");
    assert_says("gpu mode " VFIO_GPU " host", IN_USE, "",
                "VM red (process 5000500, qemu) has /dev/vfio/6");
    fake_process_closes(at.root, 5000500);
    assert_says("gpu mode " VFIO_GPU " host", 0, "goes back to the vendor's driver", "");
    assert_mode(at.root, VFIO_GPU, GPU_MODE_HOST);
    agent_on_bus_close(&at);
}

static void test_operator_drain(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    assert_says("gpu drain " GPU, 0, "", "");
    g_assert_true(fake_kernel_drained(GPU));
    assert_says("-o json gpu show " GPU, 0, "\"Draining\" : true", "");
    assert_says("gpu show " GPU, 0, "shared, draining\n", "");
    /* Neither a refused switch nor a restart ends it. */
    mode_host_add_vgpu(at.root, "running");
    assert_says("gpu mode " GPU " host", IN_USE, "", "can't be switched");
    g_assert_true(fake_kernel_drained(GPU));
    fake_kernel_use(at.root);
    agent_on_bus_restart(&at);
    g_assert_true(fake_kernel_drained(GPU));
    assert_says("gpu resume " GPU, 0, "", "");
    g_assert_false(fake_kernel_drained(GPU));
    assert_says("-o json gpu show " GPU, 0, "\"Draining\" : false", "");
    assert_says("gpu drain " VFIO_GPU, 2, "", "is not shared but passthrough");
    agent_on_bus_close(&at);
}

/* An operator's drain of before, and a switch that waits: one command ends both. */
static void test_resume_all(void)
{
    AgentOnBus at;
    VgpuGpu *gpu;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "running");
    assert_says("gpu drain " GPU, 0, "", "");
    g_autoptr(GSubprocess) first =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_SILENCE,
                         NULL, AGENT_OUT "/vgpuctl", "gpu", "mode", "--drain", GPU, "host", NULL);
    gpu = host_gpu_interface(agent_host(at.agent), GPU);
    while (!*vgpu_gpu_get_switching(gpu))
        g_main_context_iteration(NULL, TRUE);
    assert_says("gpu resume " GPU, 0, "", "");
    wait_until_settled(&at, GPU);
    g_assert_true(g_subprocess_wait(first, NULL, NULL));
    g_assert_cmpint(g_subprocess_get_exit_status(first), ==, IN_USE);
    g_assert_false(fake_kernel_drained(GPU));
    assert_says("-o json gpu show " GPU, 0, "\"Draining\" : false", "");
    agent_on_bus_restart(&at);
    g_assert_false(fake_kernel_drained(GPU));
    agent_on_bus_close(&at);
}

/* A process calls itself what it likes, and hides nobody with it. */
static void test_bad_name(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_render_node(at.root);
    fake_process(at.root, 5000301, "\xff", NULL, NULL, "dri/renderD128");
    fake_process(at.root, 5000302, "trainer", NULL, NULL, "dri/renderD128");
    assert_says("gpu users " GPU, 0, "process 5000302 (trainer)", "");
    assert_says("gpu users " GPU, 0, "process 5000301 (\xef\xbf\xbd)", "");
    assert_says("gpu mode " GPU " passthrough", IN_USE, "", "process 5000302 (trainer)");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/modes/there-and-back", test_there_and_back);
    g_test_add_func("/modes/idle-vgpu", test_idle_vgpu);
    g_test_add_func("/modes/in-the-way", test_in_the_way);
    g_test_add_func("/modes/own-name", test_own_name);
    g_test_add_func("/modes/refused-is-undone", test_refused_is_undone);
    g_test_add_func("/modes/dry-run", test_dry_run);
    g_test_add_func("/modes/drain", test_drain);
    g_test_add_func("/modes/drain-timeout", test_drain_timeout);
    g_test_add_func("/modes/taken-timeout", test_taken_timeout);
    g_test_add_func("/modes/taken-waits", test_taken_waits);
    g_test_add_func("/modes/bad-arguments", test_bad_arguments);
    g_test_add_func("/modes/one-at-a-time", test_one_at_a_time);
    g_test_add_func("/modes/cancelled", test_cancelled);
    g_test_add_func("/modes/undone", test_undone);
    g_test_add_func("/modes/partitions", test_partitions);
    g_test_add_func("/modes/autoprobe", test_autoprobe);
    g_test_add_func("/modes/no-iommu", test_no_iommu);
    g_test_add_func("/modes/group-is-taken", test_group_is_taken);
    g_test_add_func("/modes/operator-drain", test_operator_drain);
    g_test_add_func("/modes/resume-all", test_resume_all);
    g_test_add_func("/modes/bad-name", test_bad_name);
    return g_test_run();
}
