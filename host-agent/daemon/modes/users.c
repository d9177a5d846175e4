/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/users.h"

#include <string.h>

#include "host-agent/daemon/modes/binding.h"
#include "host-agent/daemon/modes/partitions.h"
#include "lib/definition.h"
#include "lib/host_root.h"
#include "lib/pci.h"
#include "lib/processes.h"
#include "lib/vgpu.h"

/* mdevctl has a definition of it, from which it can be started again. */
static gboolean is_defined(HostRoot *root, const Vgpu *vgpu)
{
    const char *parent =
        gpu_name_is_soft(vgpu->gpu) ? vgpu->gpu + strlen(GPU_SOFT_PREFIX) : vgpu->gpu;
    g_autofree char *path = g_build_filename(DEFINITIONS_DIR, parent, vgpu->uuid, NULL);

    return root_has(root, path);
}

/* The user of the vGPU's VFIO group; "a VM" if that cannot be determined. */
static char *vm_of(HostRoot *root, const char *uuid)
{
    g_auto(GStrv) nodes = nodes_of_vgpu(root, uuid);
    g_autoptr(GPtrArray) holders = holders_find(root, (const char *const *)nodes);

    return holders->len ? g_strdup(((const Holder *)g_ptr_array_index(holders, 0))->who)
                        : g_strdup("a VM");
}

/* The state of a vGPU. @only_in_the_way: nothing for one that can be stopped. */
static void add_vgpu(GStrvBuilder *users, HostRoot *root, const Vgpu *vgpu,
                     gboolean only_in_the_way)
{
    gboolean defined = is_defined(root, vgpu);

    if (!g_str_equal(vgpu->device, "closed")) {
        g_autofree char *who = vm_of(root, vgpu->uuid);

        g_strv_builder_take(users,
                            g_strdup_printf("%s has vGPU %s (%s)", who, vgpu->uuid, vgpu->device));
    } else if (only_in_the_way && !defined) {
        g_strv_builder_take(
            users, g_strdup_printf("vGPU %s has no definition, so it would be lost; define it "
                                   "(mdevctl define --uuid=%s) or stop it (mdevctl stop --uuid=%s)",
                                   vgpu->uuid, vgpu->uuid, vgpu->uuid));
    } else if (!only_in_the_way) {
        g_strv_builder_take(users, g_strdup_printf("no VM has vGPU %s%s", vgpu->uuid,
                                                   defined ? "" : ", which has no definition"));
    }
}

static void add_vgpus(GStrvBuilder *users, HostRoot *root, const Gpu *gpu, gboolean only_in_the_way)
{
    g_autoptr(GPtrArray) vgpus = vgpus_read(root);

    for (guint i = 0; i < vgpus->len; i++) {
        const Vgpu *vgpu = g_ptr_array_index(vgpus, i);

        if (g_str_equal(vgpu->gpu, gpu->pci->address))
            add_vgpu(users, root, vgpu, only_in_the_way);
    }
}

/* Engines count as their vGPUs. */
static void add_holders(GStrvBuilder *users, HostRoot *root, const PciDevice *device)
{
    g_auto(GStrv) nodes = nodes_of_device(root, device);
    g_autoptr(GPtrArray) holders = holders_find(root, (const char *const *)nodes);

    for (guint i = 0; i < holders->len; i++) {
        const Holder *holder = g_ptr_array_index(holders, i);

        if (!holder->own)
            g_strv_builder_take(users, g_strdup_printf("%s has /dev/%s of %s open", holder->who,
                                                       holder->node, device->address));
    }
}

static void add_partitions(GStrvBuilder *users, HostRoot *root, const Gpu *gpu)
{
    g_auto(GStrv) names = partitioner_list(root, gpu);

    for (guint i = 0; names[i]; i++) {
        g_autoptr(PciDevice) function = pci_device_read(root, names[i]);
        char *network = function ? companion_network(root, function) : NULL;

        if (function)
            add_holders(users, root, function);
        if (network)
            g_strv_builder_take(users, network);
    }
}

GStrv users_list(HostRoot *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) users = g_strv_builder_new();

    add_vgpus(users, root, gpu, FALSE);
    add_holders(users, root, gpu->pci);
    add_partitions(users, root, gpu);
    return g_strv_builder_end(users);
}

GStrv users_in_the_way(HostRoot *root, const Gpu *gpu, GpuMode target)
{
    g_autoptr(GStrvBuilder) users = g_strv_builder_new();

    if (gpu->mode == GPU_MODE_SHARED && target != GPU_MODE_SHARED)
        add_vgpus(users, root, gpu, TRUE);
    if (gpu->mode == GPU_MODE_PARTITIONED)
        add_partitions(users, root, gpu);
    /* These two modes change the driver, so processes lose its nodes. */
    if ((gpu->mode == GPU_MODE_PASSTHROUGH) != (target == GPU_MODE_PASSTHROUGH))
        add_holders(users, root, gpu->pci);
    if (gpu->mode != GPU_MODE_PASSTHROUGH && target == GPU_MODE_PASSTHROUGH)
        companions_add_users(users, root, gpu);
    return g_strv_builder_end(users);
}

GStrv users_vgpus(HostRoot *root, const Gpu *gpu)
{
    g_autoptr(GPtrArray) vgpus = vgpus_read(root);
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();

    for (guint i = 0; i < vgpus->len; i++) {
        const Vgpu *vgpu = g_ptr_array_index(vgpus, i);

        if (g_str_equal(vgpu->gpu, gpu->pci->address))
            g_strv_builder_add(uuids, vgpu->uuid);
    }
    return g_strv_builder_end(uuids);
}

gboolean users_has_engines(HostRoot *root, const Gpu *gpu)
{
    g_auto(GStrv) nodes = nodes_of_device(root, gpu->pci);
    g_autoptr(GPtrArray) holders = holders_find(root, (const char *const *)nodes);

    for (guint i = 0; i < holders->len; i++)
        if (((const Holder *)g_ptr_array_index(holders, i))->own)
            return TRUE;
    return FALSE;
}
