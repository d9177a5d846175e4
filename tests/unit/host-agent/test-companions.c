/* SPDX-License-Identifier: MIT */
/* Devices that share an IOMMU group with a GPU: moved with it, or in use. */
#include <gio/gio.h>
#include <string.h>

#include "host-agent/daemon/modes/reconcile.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"

/* vgpuctl's exit status if the GPU is in use. */
#define IN_USE 6

static void open_host(AgentOnBus *at, const char *host)
{
    agent_on_bus_open(at, host);
    fake_kernel_use(at->root);
    agent_on_bus_restart(at);
}

static void assert_mode(HostRoot *root, const char *address, GpuMode mode)
{
    g_autoptr(Gpu) gpu = reconcile_look(root, address, NULL);

    g_assert_nonnull(gpu);
    g_assert_cmpstr(gpu_mode_name(gpu->mode), ==, gpu_mode_name(mode));
}

/* The GPU's own sound moves with it, and comes back. */
static void test_moved(void)
{
    AgentOnBus at;

    open_host(&at, "laptop");
    assert_says("gpu mode 01:00.0 passthrough", 0,
                "0000:01:00.1, of the same IOMMU group, goes to vfio-pci too", "");
    assert_done("run systemctl start modprobe@vfio_pci.service\n");
    assert_mode(at.root, "0000:01:00.0", GPU_MODE_PASSTHROUGH);
    assert_done("drivers/snd_hda_intel/unbind 0000:01:00.1");
    assert_says("gpu mode 01:00.0 host", 0, "0000:01:00.1, of the same IOMMU group, goes back", "");
    assert_done("drivers/vfio-pci/unbind 0000:01:00.1");
    assert_mode(at.root, "0000:01:00.0", GPU_MODE_HOST);
    agent_on_bus_close(&at);
}

#define LAPTOP_BRIDGE "pci0000:00/0000:00:01.0/"

/*
 * As the last of many mounts of the host, below a home directory, which vgpud's own namespace does
 * not show.
 */
static void mount_disk(HostRoot *root, const char *source)
{
    g_autoptr(GString) mounts = g_string_new(NULL);

    for (guint i = 0; i < 200; i++)
        g_string_append_printf(mounts, "%u 1 0:%u / /run/%u rw,nosuid shared:1 - tmpfs tmpfs rw\n",
                               i + 30, i + 50, i);
    file_tree_write(root, "/proc/mounts", mounts->str);
    g_string_append_printf(mounts, "900 1 259:1 / /home/data rw shared:9 - ext4 %s rw\n", source);
    file_tree_write(root, "/proc/1/mountinfo", mounts->str);
}

/*
 * ZFS and the second device of a btrfs are in no list: a person must confirm that a disk is unused.
 */
static void test_disk(void)
{
    AgentOnBus at;
    Said said;

    open_host(&at, "laptop");
    recorded_host_add(at.root, LAPTOP_BRIDGE "0000:01:02.0 class=0x010802 vendor=0x8086 "
                                             "device=0x2 driver=nvme group=2");
    file_tree_write(at.root, "/sys/devices/" LAPTOP_BRIDGE "0000:01:02.0/nvme/nvme0/nvme0n1/uevent",
                    "DEVNAME=nvme0n1\n");
    agent_refresh(at.agent);
    said = vgpuctl("gpu mode 01:00.0 passthrough");
    g_assert_cmpint(said.status, ==, IN_USE);
    g_assert_nonnull(strstr(said.err, "0000:01:02.0 (nvme) is in the same IOMMU group"));
    said_clear(&said);
    assert_not_done("unbind");
    /* The kernel may know the disk by its number only. */
    file_tree_write(at.root, "/sys/class/block/nvme0n1/dev", "259:1\n");
    mount_disk(at.root, "/dev/root");
    said = vgpuctl("gpu mode 01:00.0 passthrough");
    g_assert_nonnull(strstr(said.err, "disk nvme0n1 of 0000:01:02.0 is in use"));
    said_clear(&said);
    agent_on_bus_close(&at);
}

static void test_in_use(void)
{
    AgentOnBus at;

    open_host(&at, "laptop");
    file_tree_write(at.root,
                    "/sys/devices/" LAPTOP_BRIDGE "0000:01:00.1/sound/card1/pcmC1D3p/uevent",
                    "DEVNAME=snd/pcmC1D3p\n");
    fake_process(at.root, 5000300, "pipewire", NULL, NULL, "snd/pcmC1D3p");
    recorded_host_add(at.root, LAPTOP_BRIDGE "0000:01:01.0 class=0x020000 vendor=0x8086 "
                                             "device=0x1 driver=e1000e group=2");
    file_tree_write(at.root, "/sys/devices/" LAPTOP_BRIDGE "0000:01:01.0/net/eth7/flags",
                    "0x1003\n");
    recorded_host_add(at.root, LAPTOP_BRIDGE "0000:01:02.0 class=0x010802 vendor=0x8086 "
                                             "device=0x2 driver=nvme group=2");
    file_tree_write(at.root, "/sys/devices/" LAPTOP_BRIDGE "0000:01:02.0/nvme/nvme0/nvme0n1/uevent",
                    "DEVNAME=nvme0n1\n");
    mount_disk(at.root, "/dev/nvme0n1");
    recorded_host_add(at.root, LAPTOP_BRIDGE "0000:01:03.0 class=0x0c0330 vendor=0x8086 "
                                             "device=0x3 driver=xhci_hcd group=2");
    agent_refresh(at.agent);
    Said said = vgpuctl("gpu mode 01:00.0 passthrough");
    g_assert_cmpint(said.status, ==, IN_USE);
    g_assert_nonnull(
        strstr(said.err, "process 5000300 (pipewire) has /dev/snd/pcmC1D3p of 0000:01:00.1"));
    g_assert_nonnull(strstr(said.err, "network interface eth7 of 0000:01:01.0 is up"));
    g_assert_nonnull(strstr(said.err, "disk nvme0n1 of 0000:01:02.0 is in use"));
    g_assert_nonnull(strstr(said.err, "0000:01:03.0 (xhci_hcd) is in the same IOMMU group"));
    said_clear(&said);
    assert_not_done("unbind");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/companions/moved", test_moved);
    g_test_add_func("/companions/in-use", test_in_use);
    g_test_add_func("/companions/disk", test_disk);
    return g_test_run();
}
