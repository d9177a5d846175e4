/* SPDX-License-Identifier: MIT */
/* A host without the kernel module: GPUs are shared with containers, VMs are told what is missing.
 */
#include <string.h>

#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

#define SHARED  "/run/vgpu/shared/" ADDRESS
#define MISSING "mdev_vgpu is not loaded"
#define PACKAGE "install the package mdev-vgpu"
/* vgpuctl's exit status for a missing object. */
#define NOT_FOUND 3

static void open_containers(AgentOnBus *at, const char *gpus)
{
    HostRoot *root = recorded_host_new("containers");

    complete_tree(root);
    file_tree_write(root, "/etc/vgpu/gpus.conf", gpus);
    agent_on_bus_open_tree(at, root);
}

static void open_shared_one(AgentOnBus *at)
{
    open_containers(at, "[gpu " ADDRESS "]\nmode=shared\n");
}

/* The kernel's state after "modprobe mdev_vgpu". */
static void load_module(const AgentOnBus *at)
{
    fake_kernel_use(at->root);
}

static void test_shared(void)
{
    AgentOnBus at;

    open_shared_one(&at);
    g_assert_true(exists(&at, SHARED));
    assert_says("gpu list", 0, ADDRESS "  shared, not with VMs  ", "");
    assert_says("gpu show " ADDRESS, 0, "with containers and jobs only", "");
    assert_says("-o json gpu show " ADDRESS, 0, "\"ContainersOnly\" : true", "");
    assert_says("type list", 0, "", "");
    agent_on_bus_restart(&at);
    assert_says("gpu list", 0, ADDRESS "  shared", "");
    agent_on_bus_close(&at);
}

/* Both of containers' transports, by size and by type, in one ledger. */
static void test_doors(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_shared_one(&at);
    fake_systemd_start(&systemd, at.daemon);
    assert_says("slice create --vram 2G --door native --uuid " UUID, 0, UUID, "");
    assert_in_file(&at, CDI_PATH, "\"/dev/dri/renderD128\"");
    assert_in_file(&at, CDI_PATH, "\"VGPU_GOVERNOR=1\"");
    assert_in_file(&at, SHARE_OF(UUID), "vram=2147483648\n");
    assert_says("slice create half --door guarded --uuid " UUID2, 0, "guarded", "");
    iterate_until_said(systemd.started, "vgpu-guard@" UUID2 ".service\n");
    assert_in_file(&at, CDI_PATH, "/vtest.sock");
    assert_says("-o json slice list", 0, "\"Type\" : \"amdgpu-vgpu-half\"", "");
    assert_says("slice create half --door native", 7, "", "5.992 GiB of 15.98 GiB are free");
    assert_says("slice remove " UUID2, 0, "", "");
    assert_says("slice create half --door native", 0, "native", "");
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* Every request that would make a vGPU of a VM. */
static void test_refused(void)
{
    AgentOnBus at;

    open_shared_one(&at);
    assert_says("vgpu create half", NOT_FOUND, "", MISSING);
    assert_says("vgpu create half", NOT_FOUND, "", PACKAGE);
    assert_says("slice create half --door vfio", NOT_FOUND, "", MISSING);
    assert_says("vgpu create nothing", NOT_FOUND, "", MISSING);
    assert_says("slice create nothing --door native", NOT_FOUND, "", "has a type \"nothing\"");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

/* As libvirt's hook and mdevctl's callout ask: a definition from when there was a module. */
static void test_start(void)
{
    static const char *const calls[] = {
        "StartSlice '" UUID "' '{}'",
        "CheckDefinition '" UUID "' '" ADDRESS "' amdgpu-vgpu-half '{\"Action\": <\"start\">}'",
    };
    HostRoot *root = recorded_host_new("containers");
    AgentOnBus at;

    complete_tree(root);
    file_tree_write(root, "/etc/vgpu/gpus.conf", "[gpu " ADDRESS "]\nmode=shared\n");
    file_tree_write(root, "/etc/mdevctl.d/" ADDRESS "/" UUID,
                    "{\"mdev_type\":\"amdgpu-vgpu-half\",\"start\":\"manual\",\"attrs\":[]}\n");
    agent_on_bus_open_tree(&at, root);
    assert_says("vgpu list", 0, "stopped", "");
    for (guint i = 0; i < G_N_ELEMENTS(calls); i++) {
        g_autofree char *line =
            g_strconcat("gdbus call --system --dest=" VGPU_BUS_NAME
                        " --object-path=" VGPU_MANAGER_PATH " --method=" VGPU_MANAGER_INTERFACE ".",
                        calls[i], NULL);
        Said said = run_beside(line);

        g_test_message("%s: %s", calls[i], said.err);
        g_assert_cmpint(said.status, ==, 1);
        g_assert_nonnull(strstr(said.err, MISSING));
        g_assert_nonnull(strstr(said.err, PACKAGE));
        said_clear(&said);
    }
    agent_on_bus_close(&at);
}

static void test_modes(void)
{
    AgentOnBus at;

    open_shared_one(&at);
    assert_says("slice create --vram 2G --door native --uuid " UUID, 0, UUID, "");
    assert_says("gpu drain " ADDRESS, 0, "", "");
    assert_says("slice create --vram 2G --door native", 7, "", "it is being drained");
    assert_says("gpu resume " ADDRESS, 0, "", "");
    assert_says("gpu mode " ADDRESS " host", 0, "no longer shared with containers", "");
    g_assert_false(exists(&at, SHARED));
    g_assert_false(exists(&at, CDI_PATH));
    agent_on_bus_restart(&at);
    assert_says("gpu list", 0, ADDRESS "  host", "");
    assert_says("gpu mode " ADDRESS " shared", 0, "but not with VMs", "");
    g_assert_true(exists(&at, SHARED));
    g_assert_true(exists(&at, CDI_PATH));
    agent_on_bus_close(&at);
}

/* An unconfigured GPU, and one whose driver appears when vgpud is running already. */
static void test_hotplug(void)
{
    static const char line[] = "pci0000:00/0000:03:00.0 class=0x030000 vendor=0x1002 device=0x73bf "
                               "numa=-1 vram=8589934592 drm=card1,renderD129";
    AgentOnBus at;

    open_containers(&at, "[gpu 0000:03:00.0]\nmode=shared\n");
    assert_says("gpu list", 0, ADDRESS "  host", "");
    recorded_host_add(at.root, line);
    agent_refresh(at.agent);
    assert_says("gpu list", 0, "0000:03:00.0  host", "");
    file_tree_link(at.root, "/sys/devices/pci0000:00/0000:03:00.0/driver",
                   "/sys/bus/pci/drivers/amdgpu");
    agent_refresh(at.agent);
    iterate_until_told("gpu list", "0000:03:00.0  shared");
    agent_on_bus_close(&at);
}

/* Containers keep their slices when VMs are added. */
static void test_module_comes(void)
{
    AgentOnBus at;
    FakeSystemd systemd;
    g_autofree char *done = NULL;

    open_shared_one(&at);
    fake_systemd_start(&systemd, at.daemon);
    assert_says("slice create half --door guarded --uuid " UUID, 0, "guarded", "");
    iterate_until_said(systemd.started, "vgpu-guard@");
    load_module(&at);
    agent_refresh(at.agent);
    done = fake_kernel_done();
    g_assert_cmpstr(done, ==, "add " ADDRESS "\n");
    g_assert_false(exists(&at, SHARED));
    /* udev's rule runs mdevctl before anybody else has the GPU's event. */
    assert_says("-o json gpu show " ADDRESS, 0, "\"ContainersOnly\" : true", "");
    assert_says("vgpu create half --dry-run", 3, "", "no GPU of this host has a type");
    assert_says("-o json gpu show " ADDRESS, 0, "\"ContainersOnly\" : false", "");
    assert_says("gpu list", 0, ADDRESS "  shared", "");
    g_assert_null(strstr(systemd.stopped->str, "vgpu-guard@"));
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* A GPU of unknown memory is not shared, and that is reported. */
static void test_no_memory(void)
{
    HostRoot *root = recorded_host_new("containers");
    AgentOnBus at;

    complete_tree(root);
    file_tree_write(root, "/etc/vgpu/gpus.conf", "[gpu " ADDRESS "]\nmode=shared\n");
    file_tree_write(root, "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS "/mem_info_vram_total",
                    "0\n");
    agent_on_bus_open_tree(&at, root);
    /* vgpud tries by itself first. */
    wait_until_settled(&at, ADDRESS);
    assert_says("gpu mode " ADDRESS " shared", 1, "", "set vram= in gpus.conf");
    assert_says("gpu list", 0, ADDRESS "  host", "");
    agent_on_bus_close(&at);
}

#define NEAR "0000:19:00.0"
#define FAR  "0000:9a:00.0"
#define HERE "0000:18:00.0"
#define H100 "[gpu]\nmemory=85899345920\nflops=66908160000000\nmemory_bandwidth=3352320000000\n"

/* Two GPUs of a server that are far from each other by PCIe have NVLink; sizes are parts of GPUs.
 */
static void test_nvlink(void)
{
    HostRoot *root = recorded_host_new("server-8gpu");
    AgentOnBus at;

    complete_tree(root);
    file_tree_write(root, "/run/vgpu/readings/" HERE, H100 "[nvlink]\n" FAR "=4\n");
    file_tree_write(root, "/run/vgpu/readings/" FAR, H100 "[nvlink]\n" HERE "=4\n");
    file_tree_write(root, "/run/vgpu/readings/" NEAR, H100);
    file_tree_write(root, "/etc/vgpu/gpus.conf",
                    "[gpu " HERE "]\nmode=shared\n[gpu " NEAR "]\nmode=shared\n[gpu " FAR
                    "]\nmode=shared\n");
    agent_on_bus_open_tree(&at, root);
    assert_says("topo", 0, HERE "  X             PIX           NODE          NODE          NV4",
                "");
    assert_says("gpu show " HERE, 0, "66.9 TFLOPS (32 bits)", "");
    assert_says("gpu show " HERE, 0, "3352 GB/s", "");
    assert_says("slice create --vram 25% --door native --gpu " HERE " --job train --name first", 0,
                HERE, "");
    assert_says("-o json slice list", 0, "\"Vram\" : 21474836480", "");
    assert_says("slice create --vram 25% --door native --not-gpu " HERE " --job train", 0, FAR, "");
    /* What another size of the same GPUs would be. */
    assert_says("slice set first --vram 50%", 0, "", "");
    assert_says("-o json slice list", 0, "\"Vram\" : 42949672960", "");
    assert_says("slice create --vram 76% --door native --gpu " FAR, 7, "", "");
    assert_says("slice create --vram 0% --door native", 2, "", "or 1% to 100%");
    assert_says("slice create --vram 101% --door native", 2, "", "--vram cannot be \"101%\"");
    assert_says("slice create --vram % --door native", 2, "", "--vram cannot be \"%\"");
    agent_on_bus_close(&at);
}

/* Some links lead to switches, which connect all GPUs that have any. */
static void test_nvswitch(void)
{
    HostRoot *root = recorded_host_new("server-8gpu");
    AgentOnBus at;

    file_tree_write(root, "/run/vgpu/readings/" HERE, H100 "[nvlink]\nswitch=18\n");
    file_tree_write(root, "/run/vgpu/readings/" FAR, H100 "[nvlink]\nswitch=16\n");
    file_tree_write(root, "/run/vgpu/readings/" NEAR, H100);
    agent_on_bus_open_tree(&at, root);
    assert_says("topo", 0, HERE "  X             PIX           NODE          NODE          NV16",
                "");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/no-module/shared", test_shared);
    g_test_add_func("/no-module/doors", test_doors);
    g_test_add_func("/no-module/refused", test_refused);
    g_test_add_func("/no-module/start", test_start);
    g_test_add_func("/no-module/modes", test_modes);
    g_test_add_func("/no-module/hotplug", test_hotplug);
    g_test_add_func("/no-module/nvlink", test_nvlink);
    g_test_add_func("/no-module/nvswitch", test_nvswitch);
    g_test_add_func("/no-module/module-comes", test_module_comes);
    g_test_add_func("/no-module/no-memory", test_no_memory);
    return g_test_run();
}
