/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/mode_host.h"

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/modes/reconcile.h"
#include "host-agent/store/tables.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"

void mode_host_configure(HostRoot *root)
{
    file_tree_write(root, "/etc/vgpu/types.d/10.conf", "[type half]\nvram=1/2\n");
    file_tree_write(root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=shared\n");
}

void mode_host_open(AgentOnBus *at, const char *host)
{
    agent_on_bus_open(at, host);
    mode_host_configure(at->root);
    fake_kernel_use(at->root);
    agent_on_bus_restart(at);
}

void mode_host_add_vgpu(HostRoot *root, const char *device)
{
    g_autofree char *state = g_strdup_printf("state=device=%s engine=ready|vram_bytes=1", device);

    recorded_host_add_vgpu(root, GPU_PATH, UUID, "amdgpu-vgpu-half", state);
    file_tree_link(root, "/sys/devices/" GPU_PATH "/" UUID "/iommu_group",
                   "../../../../../kernel/iommu_groups/77");
    if (!g_str_equal(device, "closed"))
        fake_process(root, 5000200, "qemu-system-x86", "red", NULL, "vfio/77");
}

void assert_mode(HostRoot *root, const char *address, GpuMode mode)
{
    g_autoptr(Gpu) gpu = reconcile_look(root, address, NULL);

    g_assert_nonnull(gpu);
    g_assert_cmpstr(gpu_mode_name(gpu->mode), ==, gpu_mode_name(mode));
}

void assert_wanted(HostRoot *root, const char *address, const char *mode)
{
    g_autoptr(GPtrArray) entries = gpus_load(root, NULL);
    const GpuEntry *entry = gpus_find(entries, address);

    g_assert_cmpstr(entry ? gpu_mode_name(entry->mode) : "nothing", ==, mode);
}

void assert_journal_empty(const AgentOnBus *at)
{
    g_autoptr(GPtrArray) entries = operation_table_read(host_db(agent_host(at->agent)), NULL);

    g_assert_cmpuint(entries->len, ==, 0);
}

void mode_host_add_render_node(HostRoot *root)
{
    file_tree_write(root, "/sys/devices/" GPU_PATH "/drm/renderD128/uevent",
                    "DEVNAME=dri/renderD128\n");
}
