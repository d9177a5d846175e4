/* SPDX-License-Identifier: MIT */
/* SR-IOV: virtual functions (Documentation/PCI/pci-iov-howto.rst). */
#include "host-agent/daemon/modes/partitioner.h"

#include "host-agent/daemon/modes/kernel_call.h"
#include "lib/sysfs.h"

static gboolean can(const char *root, const Gpu *gpu)
{
    (void)root;
    return gpu->pci->total_vfs > 0;
}

/* The links are virtfn0, virtfn1 …; a function's number is not in its address. */
static GStrv list(const char *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();

    (void)root;
    for (guint i = 0; i < gpu->pci->total_vfs; i++) {
        g_autofree char *link = g_strdup_printf("virtfn%u", i);
        char *name = sysfs_link_name(gpu->pci->dir, link);

        if (name)
            g_strv_builder_take(names, name);
    }
    return g_strv_builder_end(names);
}

static guint most(const Gpu *gpu)
{
    return gpu->pci->total_vfs;
}

static gboolean write_number(const Gpu *gpu, const char *attribute, guint number, GError **error)
{
    g_autofree char *path = g_build_filename(gpu->pci->dir, attribute, NULL);
    g_autofree char *text = g_strdup_printf("%u", number);

    return kernel_write(path, text, error);
}

/* As the kernel has it at first: functions that somebody else makes get the host's drivers. */
static gboolean probe_again(const Gpu *gpu, GError **error)
{
    return write_number(gpu, "sriov_drivers_autoprobe", 1, error);
}

/*
 * The number can only be changed by way of 0. The host's drivers do not get the functions: they are
 * for VMs, which get them from vfio-pci (libvirt does that by itself).
 */
static gboolean make(const char *root, const Gpu *gpu, guint count, GError **error)
{
    guint wanted = count ? count : gpu->pci->total_vfs;

    (void)root;
    if (gpu->pci->vfs == wanted)
        return TRUE;
    if (gpu->pci->vfs && !write_number(gpu, "sriov_numvfs", 0, error))
        return FALSE;
    if (!write_number(gpu, "sriov_drivers_autoprobe", 0, error))
        return FALSE;
    if (write_number(gpu, "sriov_numvfs", wanted, error))
        return TRUE;
    probe_again(gpu, NULL);
    return FALSE;
}

static gboolean take_away(const char *root, const Gpu *gpu, GError **error)
{
    (void)root;
    return !gpu->pci->vfs ||
           (write_number(gpu, "sriov_numvfs", 0, error) && probe_again(gpu, error));
}

const Partitioner partitioner_sriov = {
    .name = "SR-IOV",
    .can = can,
    .list = list,
    .most = most,
    .make = make,
    .remove = take_away,
};
