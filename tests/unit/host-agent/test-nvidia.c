/* SPDX-License-Identifier: MIT */
/* A GPU of NVIDIA's goes to vfio-pci: its driver waits for whoever has it open, for ever. */
#include <string.h>

#include "host-agent/daemon/modes/reconcile.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"

#define GPU       "0000:18:00.0"
#define SWITCH_IT "gpu mode " GPU " passthrough"
/* vgpuctl's exit status if the GPU is in use. */
#define IN_USE 6

static void assert_mode(HostRoot *root, GpuMode mode)
{
    g_autoptr(Gpu) gpu = reconcile_look(root, GPU, NULL);

    g_assert_nonnull(gpu);
    g_assert_cmpstr(gpu_mode_name(gpu->mode), ==, gpu_mode_name(mode));
}

static void open_host(AgentOnBus *at)
{
    HostRoot *root = recorded_host_new("empty");

    recorded_host_add(root, "pci0000:15/" GPU " class=0x030200 vendor=0x10de device=0x2330 "
                            "driver=nvidia group=13");
    file_tree_write(root, "/proc/driver/nvidia/gpus/" GPU "/information", "Device Minor: \t 3\n");
    file_tree_write(root, "/run/vgpu/readings/" GPU, "[gpu]\nmemory=17179869184\n");
    fake_kernel_use(root);
    agent_on_bus_open_tree(at, root);
}

/* It is asked twice a minute by our reader, and kept initialized by NVIDIA's daemon. */
static void test_users(void)
{
    AgentOnBus at;
    Said said;

    open_host(&at);
    fake_process(at.root, 5000210, "vgpu-nvidia-rea", NULL,
                 "0::/system.slice/vgpu-nvidia-readings.service\n", "nvidia3");
    fake_process(at.root, 5000211, "nvidia-persiste", NULL,
                 "0::/system.slice/nvidia-persistenced.service\n", "nvidia3");
    said = vgpuctl(SWITCH_IT);
    g_test_message("%s", said.err);
    g_assert_cmpint(said.status, ==, IN_USE);
    g_assert_null(strstr(said.err, "vgpu-nvidia-rea"));
    g_assert_nonnull(strstr(said.err, "process 5000211 (nvidia-persiste) has /dev/nvidia3 of " GPU
                                      " open; run \"nvidia-smi -i " GPU " -pm 0\""));
    said_clear(&said);
    assert_not_done("systemctl");
    fake_process_closes(at.root, 5000211);
    assert_says(SWITCH_IT, 0, "goes to vfio-pci", "");
    assert_mode(at.root, GPU_MODE_PASSTHROUGH);
    assert_done("run systemctl stop vgpu-nvidia-readings.service\n"
                "write /sys/devices/pci0000:15/" GPU "/driver_override vfio-pci\n"
                "write /sys/bus/pci/drivers/nvidia/unbind " GPU "\n"
                "write /sys/bus/pci/drivers_probe " GPU "\n"
                "run systemctl start --no-block vgpu-nvidia-readings.service\n");
    agent_on_bus_close(&at);
}

/* The reader is started again whether or not the switch succeeds. */
static void test_undone(void)
{
    AgentOnBus at;

    open_host(&at);
    fake_kernel_refuse("nvidia/unbind");
    assert_says(SWITCH_IT, 1, "", "refused by the test");
    assert_done("run systemctl start --no-block vgpu-nvidia-readings.service\n");
    assert_mode(at.root, GPU_MODE_HOST);
    agent_on_bus_close(&at);
}

/* The driver itself keeps it initialized: no process can be seen, and unbinding would not end. */
static void test_persistent(void)
{
    AgentOnBus at;

    open_host(&at);
    fake_kernel_say("Enabled\n");
    assert_says("gpu mode --dry-run " GPU " passthrough", 0, "(persistence mode); run", "");
    assert_says(SWITCH_IT, 1, "", "run \"nvidia-smi -i " GPU " -pm 0\"");
    assert_done("-- nvidia-smi --id=" GPU " --query-gpu=persistence_mode --format=csv,noheader");
    assert_not_done("unbind");
    assert_mode(at.root, GPU_MODE_HOST);
    fake_kernel_say("Disabled\n");
    assert_says(SWITCH_IT, 0, "goes to vfio-pci", "");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/nvidia/users", test_users);
    g_test_add_func("/nvidia/undone", test_undone);
    g_test_add_func("/nvidia/persistent", test_persistent);
    return g_test_run();
}
