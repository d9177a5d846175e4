/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/gpu_memory.h"

#include "host-agent/meter/counters.h"
#include "lib/nvidia_readings.h"

/* Of test hosts, whose GPUs stand for others. */
#define STAND_IN "/run/vgpu/vram-used"

/**
 * Counted - what slices have of a GPU
 * @used: bytes; @requested: without those that were measured beside what programs asked for
 * @known: of some slice it is
 */
typedef struct {
    guint64 used;
    guint64 requested;
    gboolean known;
} Counted;

/**
 * Reading - the last one of NVIDIA's library
 * @at: its time
 * @counted: what slices had when it was seen first
 */
typedef struct {
    gint64 at;
    Counted counted;
} Reading;

struct GpuMemory {
    const HostView *view;
    GHashTable *readings; /* a GPU's address to Reading */
};

static void add_use(Counted *counted, const SliceUse *use, guint64 used)
{
    counted->known = TRUE;
    counted->used += used;
    counted->requested += use->vram_used - MIN(use->vram_used, use->vram_ungoverned);
}

static void count_vgpus(const char *gpu, const GPtrArray *vgpus, Counted *counted)
{
    for (guint i = 0; i < vgpus->len; i++) {
        const VgpuCounters *vgpu = g_ptr_array_index(vgpus, i);
        guint64 used;

        if (g_str_equal(vgpu->vgpu->gpu, gpu) && counters_vram(vgpu, &used))
            add_use(counted, &vgpu->slice, used);
    }
}

/* The arbiter still counts for a suspended slice what is in the host's memory. */
static void count_slices(const GpuMemory *memory, const char *gpu, Counted *counted)
{
    const GPtrArray *slices = host_view_slices(memory->view);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const SliceUse *use = counters_use(host_view_counters(memory->view), slice->uuid);

        if (use && !slice_is_vgpu(slice) && !slice->suspended && g_str_equal(slice->gpu, gpu))
            add_use(counted, use, use->vram_used);
    }
}

static gboolean read_driver(HostRoot *root, const PciDevice *pci, guint64 *bytes)
{
    gint64 used;

    if (amdgpu_is_apu(root, pci->dir) && amdgpu_apu_memory(root, pci->dir, "used", bytes))
        return TRUE;
    used = sysfs_number(root, pci->dir, "mem_info_vram_used", -1);
    if (used < 0)
        used = sysfs_number(root, STAND_IN, pci->address, -1);
    *bytes = (guint64)used;
    return used >= 0;
}

static gboolean read_nvidia(GpuMemory *memory, const char *gpu, const Counted *counted,
                            guint64 *bytes)
{
    Reading *reading = g_hash_table_lookup(memory->readings, gpu);
    guint64 before;
    gint64 at;

    if (!nvidia_memory_used(host_view_root(memory->view), gpu, bytes, &at))
        return FALSE;
    if (!reading) {
        reading = g_new0(Reading, 1);
        g_hash_table_insert(memory->readings, g_strdup(gpu), reading);
    }
    if (reading->at != at)
        *reading = (Reading){at, *counted};
    if (!counted->known || !reading->counted.known)
        return TRUE;
    before = reading->counted.requested;
    if (counted->requested >= before)
        *bytes += counted->requested - before;
    else
        *bytes -= MIN(*bytes, before - counted->requested);
    return TRUE;
}

gboolean gpu_memory_used(GpuMemory *memory, const Gpu *gpu, guint64 vram, const GPtrArray *vgpus,
                         guint64 *bytes)
{
    const char *address = gpu->pci->address;
    Counted counted = {0};

    count_vgpus(address, vgpus, &counted);
    count_slices(memory, address, &counted);
    if (!read_driver(host_view_root(memory->view), gpu->pci, bytes) &&
        !read_nvidia(memory, address, &counted, bytes)) {
        *bytes = counted.used;
        return counted.known;
    }
    if (gpu->vram > vram) {
        *bytes -= MIN(*bytes, gpu->vram - vram);
        *bytes = MAX(*bytes, counted.used);
    }
    return TRUE;
}

GpuMemory *gpu_memory_new(const HostView *view)
{
    GpuMemory *memory = g_new0(GpuMemory, 1);

    memory->view = view;
    memory->readings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return memory;
}

void gpu_memory_free(GpuMemory *memory)
{
    g_hash_table_unref(memory->readings);
    g_free(memory);
}
