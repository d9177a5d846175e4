/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/readings/vram_used.h"

#include "lib/sysfs.h"

#define STAND_IN "run/vgpu/vram-used"

static gboolean of_engines(const char *gpu, const GPtrArray *vgpus, guint64 *bytes)
{
    gboolean known = FALSE;

    *bytes = 0;
    for (guint i = 0; i < vgpus->len; i++) {
        const VgpuCounters *vgpu = g_ptr_array_index(vgpus, i);
        guint64 vram;

        if (!g_str_equal(vgpu->vgpu->gpu, gpu) || !counters_vram(vgpu, &vram))
            continue;
        known = TRUE;
        *bytes += vram;
    }
    return known;
}

gboolean vram_used(const char *root, const PciDevice *pci, const GPtrArray *vgpus, guint64 *bytes)
{
    g_autofree char *dir = g_build_filename(root[0] ? root : "/", STAND_IN, NULL);
    gint64 used = sysfs_number(pci->dir, "mem_info_vram_used", -1);

    if (used < 0)
        used = sysfs_number(dir, pci->address, -1);
    if (used < 0)
        return of_engines(pci->address, vgpus, bytes);
    *bytes = (guint64)used;
    return TRUE;
}
