/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/takeover.h"

#include "host-agent/model/request.h"
#include "host-agent/model/tenant.h"

/*
 * The driver and mdevctl keep these three for us. What is empty says nothing, and what somebody
 * wrote past the callout may be anything: in both cases the slice keeps what it has.
 */
static void take_ours(Slice *slice, const char *tenant, const char *class, gint64 oversubscribe)
{
    if (tenant && tenant_name_valid(tenant) && !g_str_equal(tenant, slice->tenant)) {
        g_free(slice->tenant);
        slice->tenant = g_strdup(tenant);
    }
    if (class)
        slice_class_parse(class, &slice->class);
    if (oversubscribe >= 0 && (guint64)oversubscribe <= REQUEST_MAX_BYTES)
        slice->oversubscribe = (guint64)oversubscribe;
}

void takeover_vgpu(Slice *slice, const Vgpu *vgpu)
{
    slice->vram = vgpu->vram;
    slice->weight = vgpu->weight;
    slice->cap = vgpu->cap;
    slice->priority = (guint)MAX(vgpu->priority, 0);
    slice->display = (int)vgpu->display;
    take_ours(slice, vgpu->tenant, vgpu->class, vgpu->oversubscribe);
}

void takeover_type(Slice *slice, const Offer *offer)
{
    slice->vram = offer->desc->vram_bytes;
    slice->weight = offer->desc->weight;
    slice->cap = offer->desc->cap;
    slice->priority = offer->desc->priority;
    slice->display = (int)offer->desc->scanouts;
}

static guint64 or_else(gint64 value, guint64 otherwise)
{
    return value >= 0 ? (guint64)value : otherwise;
}

void takeover_definition(Slice *slice, const Definition *definition)
{
    slice->vram = or_else(definition->vram, slice->vram);
    slice->weight = (guint)or_else(definition->weight, slice->weight);
    slice->cap = (guint)or_else(definition->cap, slice->cap);
    slice->priority = (guint)or_else(definition->priority, slice->priority);
    if (definition->display >= 0)
        slice->display = definition->display > 0;
    take_ours(slice, definition->tenant, definition->class, definition->oversubscribe);
}
