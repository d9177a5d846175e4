/* SPDX-License-Identifier: MIT */
#include "host-agent/model/offer.h"

#include "host-agent/model/request.h"
#include "host-agent/model/tenant.h"
#include "lib/bus.h"
#include "lib/units.h"

static const char *of_what(const Slice *wanted)
{
    return *wanted->type ? "a vGPU of type " : "a slice of its size";
}

static gboolean refuse(const Slice *wanted, const char *what, guint asked, guint most,
                       GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                "%s %u is at the cost of others: %s%s has %u, and only an administrator can give "
                "it more",
                what, asked, of_what(wanted), wanted->type, most);
    return FALSE;
}

/* A cap of 0 is none. */
static guint looseness(guint cap)
{
    return cap ? cap : G_MAXUINT;
}

static gboolean refuse_oversubscription(const Slice *wanted, guint64 most, GError **error)
{
    g_autofree char *asked_size = size_format(wanted->oversubscribe);
    g_autofree char *most_size = size_format(most);

    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                "%s of the host's memory are at the cost of others: %s%s has %s beyond its VRAM, "
                "and only an administrator can give it more",
                asked_size, of_what(wanted), wanted->type, most_size);
    return FALSE;
}

static gboolean refuse_engines(const Slice *wanted, const Slice *before, GError **error)
{
    g_autofree char *asked = engines_format(wanted->engines);
    g_autofree char *most = engines_format(before->engines);

    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                "the engines %s of the GPU are more than it may use: it has %s, and only an "
                "administrator can give it more",
                asked, most);
    return FALSE;
}

static gboolean refuse_unknown(const Slice *wanted, GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                "GPU %s offers no type \"%s\" now, so only an administrator can ask for it; "
                "\"vgpuctl type list\" shows the types",
                wanted->gpu, wanted->type);
    return FALSE;
}

gboolean entitlement_check(const Slice *wanted, const Slice *before, const Offer *offer,
                           GError **error)
{
    guint weight = MAX(offer ? offer->desc->weight : 0, before ? before->weight : 0);
    guint priority = MAX(offer ? offer->desc->priority : 0, before ? before->priority : 0);
    guint64 oversubscribe =
        MAX(offer ? offer->oversubscribe : 0, before ? before->oversubscribe : 0);
    guint cap = MAX(offer ? looseness(offer->desc->cap) : 0, before ? looseness(before->cap) : 0);

    if (!offer && !before)
        return refuse_unknown(wanted, error);
    if (wanted->weight > weight)
        return refuse(wanted, "weight", wanted->weight, weight, error);
    if (wanted->priority > priority)
        return refuse(wanted, "priority", wanted->priority, priority, error);
    if (looseness(wanted->cap) > cap)
        return refuse(wanted, "cap", wanted->cap, cap, error);
    if (wanted->oversubscribe > oversubscribe)
        return refuse_oversubscription(wanted, oversubscribe, error);
    if (before && engines_join(wanted->engines, before->engines) != before->engines)
        return refuse_engines(wanted, before, error);
    return TRUE;
}

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

void adopt_vgpu(Slice *slice, const Vgpu *vgpu)
{
    slice->vram = vgpu->vram;
    slice->weight = vgpu->weight;
    slice->cap = vgpu->cap;
    slice->priority = (guint)MAX(vgpu->priority, 0);
    slice->display = (int)vgpu->display;
    take_ours(slice, vgpu->tenant, vgpu->class, vgpu->oversubscribe);
}

void adopt_type(Slice *slice, const Offer *offer)
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

void adopt_definition(Slice *slice, const Definition *definition)
{
    slice->vram = or_else(definition->vram, slice->vram);
    slice->weight = (guint)or_else(definition->weight, slice->weight);
    slice->cap = (guint)or_else(definition->cap, slice->cap);
    slice->priority = (guint)or_else(definition->priority, slice->priority);
    if (definition->display >= 0)
        slice->display = definition->display > 0;
    take_ours(slice, definition->tenant, definition->class, definition->oversubscribe);
}
