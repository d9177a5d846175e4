/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/lists.h"

#include <string.h>

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/model/slice.h"
#include "lib/gpu.h"
#include "lib/vgpu.h"

static void add_text(GVariantBuilder *dict, const char *key, const char *text)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_string(text ? text : ""));
}

static void add_number(GVariantBuilder *dict, const char *key, guint64 number)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_uint64(number));
}

static void add_count(GVariantBuilder *dict, const char *key, guint count)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_uint32(count));
}

static void add_flag(GVariantBuilder *dict, const char *key, gboolean flag)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_boolean(flag));
}

/* vgpud's own values. */
static void add_slice(GVariantBuilder *dict, const Slice *slice)
{
    g_autofree char *engines = engines_format(slice->engines);

    add_text(dict, "Uuid", slice->uuid);
    add_text(dict, "Gpu", slice->gpu);
    add_text(dict, "Type", slice->type);
    add_text(dict, "Tenant", slice->tenant);
    add_text(dict, "Class", slice_class_name(slice->class));
    add_text(dict, "Job", slice->job);
    add_text(dict, "Replica", slice->replica);
    add_text(dict, "Domain", slice->domain);
    add_number(dict, "Vram", slice->vram);
    add_count(dict, "Compute", slice->compute);
    add_number(dict, "Oversubscribe", slice->oversubscribe);
    add_count(dict, "Weight", slice->weight);
    add_count(dict, "Cap", slice->cap);
    g_variant_builder_add(dict, "{sv}", "Priority", g_variant_new_int32((int)slice->priority));
    if (slice->display >= 0)
        add_count(dict, "Display", (guint)slice->display);
    add_text(dict, "Engines", engines);
    add_flag(dict, "Defined", slice->defined);
    add_flag(dict, "Autostart", slice->autostart);
    add_text(dict, "Name", slice->name);
    if (!slice_is_for_container(slice))
        return;
    add_text(dict, "Door", slice_transport_name(slice->transport));
    add_flag(dict, "Ephemeral", slice->ephemeral);
}

/* Unknown values are left out. */
static void add_use(GVariantBuilder *dict, const VgpuCounters *counters)
{
    guint64 vram;

    add_number(dict, "WindowFaults", counters->window_faults);
    add_number(dict, "Throttled", counters->slice.throttled_ns);
    if (counters->slice_known) {
        add_number(dict, "Waited", counters->slice.waited_ns);
        add_number(dict, "Spilled", counters->slice.spilled);
        add_text(dict, "SpillKind", counters->slice.spill_kind);
    }
    if (counters->drm.known)
        add_number(dict, "GpuTime", counters->drm.gpu_ns);
    if (counters_vram(counters, &vram))
        add_number(dict, "VramUsed", vram);
}

/* The driver's values; NULL: the vGPU is not started. */
static void add_vgpu(GVariantBuilder *dict, const VgpuCounters *counters)
{
    const Vgpu *vgpu = counters ? counters->vgpu : NULL;

    add_text(dict, "Device", vgpu ? vgpu->device : "stopped");
    add_text(dict, "Engine", vgpu ? vgpu->engine : "none");
    add_text(dict, "Failure", vgpu ? vgpu->failure : "");
    add_number(dict, "Window", vgpu ? vgpu->window : 0);
    add_number(dict, "Requests", vgpu ? vgpu->requests : 0);
    add_number(dict, "Doorbells", vgpu ? vgpu->doorbells : 0);
    add_number(dict, "Interrupts", vgpu ? vgpu->interrupts : 0);
    add_number(dict, "EngineLosses", vgpu ? vgpu->engine_losses : 0);
    if (counters)
        add_use(dict, counters);
}

static GVariant *dictionary_of_slice(const Slice *slice, const VgpuCounters *vgpu)
{
    GVariantBuilder dict;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    add_slice(&dict, slice);
    add_vgpu(&dict, vgpu);
    return g_variant_builder_end(&dict);
}

static int by_uuid(const void *a, const void *b)
{
    return strcmp((*(Slice *const *)a)->uuid, (*(Slice *const *)b)->uuid);
}

static gboolean is_vgpu_for(const Tenants *tenants, const Slice *slice, const char *user)
{
    return slice_is_vgpu(slice) && tenants_shows(tenants, slice->tenant, user);
}

/* All slices by UUID; of Slice, owned by @slices. */
static GPtrArray *sorted_slices(const Slices *slices)
{
    GPtrArray *sorted = g_ptr_array_copy((GPtrArray *)slices_all(slices), NULL, NULL);

    g_ptr_array_set_free_func(sorted, NULL);
    g_ptr_array_sort(sorted, by_uuid);
    return sorted;
}

GVariant *list_vgpus(Counters *counters, const Slices *slices, const Tenants *tenants,
                     const char *user)
{
    const GPtrArray *vgpus = counters_read(counters);
    g_autoptr(GPtrArray) sorted = sorted_slices(slices);
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < sorted->len; i++) {
        const Slice *slice = g_ptr_array_index(sorted, i);

        if (is_vgpu_for(tenants, slice, user))
            g_variant_builder_add_value(
                &list, dictionary_of_slice(slice, counters_find(vgpus, slice->uuid)));
    }
    return g_variant_builder_end(&list);
}

GVariant *list_vgpus_short(Counters *counters, const Slices *slices, const Tenants *tenants,
                           const char *user)
{
    const GPtrArray *vgpus = counters_read(counters);
    g_autoptr(GPtrArray) sorted = sorted_slices(slices);
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("a(ssssstss)"));
    for (guint i = 0; i < sorted->len; i++) {
        const Slice *slice = g_ptr_array_index(sorted, i);
        const VgpuCounters *vgpu = counters_find(vgpus, slice->uuid);

        if (is_vgpu_for(tenants, slice, user))
            g_variant_builder_add(&list, "(ssssstss)", slice->uuid, slice->gpu, slice->type,
                                  vgpu ? vgpu->vgpu->device : "stopped",
                                  vgpu ? vgpu->vgpu->engine : "none", slice->vram,
                                  slice_class_name(slice->class), slice->tenant);
    }
    return g_variant_builder_end(&list);
}

GVariant *list_vgpus_called(Counters *counters, const Slices *slices, const GStrv uuids)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; uuids[i]; i++) {
        const Slice *slice = slices_find(slices, uuids[i]);

        if (slice)
            g_variant_builder_add_value(
                &list, dictionary_of_slice(slice, counters_read_one(counters, uuids[i])));
    }
    return g_variant_builder_end(&list);
}

/* The arbiter's values of a slice that is no vGPU. */
static void add_slice_use(GVariantBuilder *dict, const SliceUse *use)
{
    add_count(dict, "Members", use->members);
    add_number(dict, "VramUsed", use->vram_used);
    add_number(dict, "Spilled", use->spilled);
    add_text(dict, "SpillKind", use->spill_kind);
    add_number(dict, "GpuTime", use->gpu_ns);
    add_number(dict, "Waited", use->waited_ns);
    add_number(dict, "Throttled", use->throttled_ns);
}

static GVariant *dictionary_of_container_slice(const Counters *counters, const GPtrArray *vgpus,
                                               const Slices *slices, const Claims *claims,
                                               const Slice *slice)
{
    const SliceUse *use = counters_use(counters, slice->uuid);
    const char *first = share_group_first(slices, claims, slice);
    GVariantBuilder dict;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    add_slice(&dict, slice);
    add_text(&dict, "Container", claims_container(claims, slice->uuid));
    add_text(&dict, "CountedWith", first == slice->uuid ? "" : first);
    if (slice_is_vgpu(slice))
        add_vgpu(&dict, counters_find(vgpus, slice->uuid));
    else if (use)
        add_slice_use(&dict, use);
    return g_variant_builder_end(&dict);
}

GVariant *list_container_slices(Counters *counters, const Slices *slices, const Tenants *tenants,
                                const Claims *claims, const char *user)
{
    const GPtrArray *vgpus = counters_read(counters);
    g_autoptr(GPtrArray) sorted = sorted_slices(slices);
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < sorted->len; i++) {
        const Slice *slice = g_ptr_array_index(sorted, i);

        if (slice_is_for_container(slice) && tenants_shows(tenants, slice->tenant, user))
            g_variant_builder_add_value(
                &list, dictionary_of_container_slice(counters, vgpus, slices, claims, slice));
    }
    return g_variant_builder_end(&list);
}

GVariant *list_slices(const GPtrArray *slices)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < slices->len; i++)
        g_variant_builder_add_value(&list, dictionary_of_slice(g_ptr_array_index(slices, i), NULL));
    return g_variant_builder_end(&list);
}
