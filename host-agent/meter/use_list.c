/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/use_list.h"

static void add_number(GVariantBuilder *dict, const char *key, guint64 number)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_uint64(number));
}

/* Unknown values are left out. */
static void add_vgpu(GVariantBuilder *dict, const VgpuCounters *counters)
{
    guint64 vram, gpu_ns;

    add_number(dict, "WindowFaults", counters->window_faults);
    add_number(dict, "Throttled", counters->slice.throttled_ns);
    if (counters->slice_known) {
        add_number(dict, "Waited", counters->slice.waited_ns);
        add_number(dict, "PeakVram", counters->slice.vram_peak);
        add_number(dict, "Spilled", counters->slice.spilled);
        g_variant_builder_add(dict, "{sv}", "SpillKind",
                              g_variant_new_string(counters->slice.spill_kind));
    }
    if (counters_gpu_ns(counters, &gpu_ns))
        add_number(dict, "GpuTime", gpu_ns);
    if (counters_vram(counters, &vram))
        add_number(dict, "VramUsed", vram);
}

/* Of a slice that is no vGPU, as its arbiter says. */
static void add_slice(GVariantBuilder *dict, const Slice *slice, const SliceUse *use)
{
    guint64 gpu_ns;

    g_variant_builder_add(dict, "{sv}", "Members", g_variant_new_uint32(use->members));
    add_number(dict, "VramUsed", use->vram_used);
    add_number(dict, "PeakVram", use->vram_peak);
    add_number(dict, "Spilled", use->spilled);
    g_variant_builder_add(dict, "{sv}", "SpillKind", g_variant_new_string(use->spill_kind));
    if (slice_use_gpu_ns(use, &gpu_ns))
        add_number(dict, "GpuTime", gpu_ns);
    add_number(dict, "Waited", use->waited_ns);
    add_number(dict, "Throttled", use->throttled_ns);
    if (!slice_lent(slice))
        return;
    add_number(dict, "OnGpu", use->resident);
    add_number(dict, "Unmovable", use->unmovable);
    add_number(dict, "Displaced", use->displaced);
    add_number(dict, "Moved", use->moved);
    add_number(dict, "MemoryWaited", use->memory_waited_ns);
}

GVariant *use_list(const HostView *view)
{
    Counters *counters = host_view_counters(view);
    const GPtrArray *slices = host_view_slices(view);
    GVariantBuilder list;

    counters_read(counters);
    g_variant_builder_init(&list, G_VARIANT_TYPE("a{sa{sv}}"));
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const VgpuCounters *vgpu = counters_known(counters, slice->uuid);
        const SliceUse *use = counters_use(counters, slice->uuid);
        GVariantBuilder dict;

        if (!vgpu && !use)
            continue;
        g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
        if (vgpu)
            add_vgpu(&dict, vgpu);
        else
            add_slice(&dict, slice, use);
        g_variant_builder_add(&list, "{s@a{sv}}", slice->uuid, g_variant_builder_end(&dict));
    }
    return g_variant_builder_end(&list);
}
