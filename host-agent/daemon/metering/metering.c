/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/metering/metering.h"

#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/call.h"

/**
 * Metering
 * @started: when vgpud was, in seconds since 1970
 */
struct Metering {
    MeteringParts parts;
    gint64 started;
};

/* a{sv}: the slice, what the kernel and vgpud do with it, and its users. Floating. */
static GVariant *metered_slice(const Metering *metering, const Slice *slice)
{
    const Claims *claims = metering->parts.claims;
    const char *container = claims_container(claims, slice->uuid);
    g_autofree char *containers = claims_containers(claims, slice->uuid);
    g_autofree char *cgroup = claims_cgroup(claims, slice->uuid);
    GVariantDict dict;

    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert_value(&dict, "Slice", slice_to_dict(slice));
    g_variant_dict_insert(&dict, "Present", "b", slice->present);
    g_variant_dict_insert(&dict, "Reserved", "b", slice->reserved);
    g_variant_dict_insert(&dict, "Leaving", "b", slice->leaving);
    g_variant_dict_insert(&dict, "Suspended", "b", slice->suspended);
    g_variant_dict_insert(&dict, "Container", "s", container ? container : "");
    g_variant_dict_insert(&dict, "Containers", "s", containers);
    g_variant_dict_insert(&dict, "Claimed", "b", claims_claimed_by(claims, slice->uuid) != NULL);
    g_variant_dict_insert(&dict, "Cgroup", "s", cgroup ? cgroup : "");
    g_variant_dict_insert(&dict, "First", "s",
                          share_group_first(metering->parts.slices, claims, slice));
    return g_variant_dict_end(&dict);
}

GVariant *metering_state(const Metering *metering)
{
    const GPtrArray *slices = slices_all(metering->parts.slices);
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("a{sa{sv}}"));
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        g_variant_builder_add(&list, "{s@a{sv}}", slice->uuid, metered_slice(metering, slice));
    }
    return g_variant_new("(@a{sa{sv}}@a(sss)@a(stt)x)", g_variant_builder_end(&list),
                         findings_held(metering->parts.findings),
                         findings_cleared(metering->parts.findings), metering->started);
}

void metering_slice_changed(const Metering *metering, const char *uuid)
{
    const Slice *slice = slices_find(metering->parts.slices, uuid);
    GVariant *told = slice ? metered_slice(metering, slice)
                           : g_variant_new_array(G_VARIANT_TYPE("{sv}"), NULL, 0);

    meter_tell(metering->parts.meter, "SliceChanged", g_variant_new("(s@a{sv})", uuid, told));
}

/* Containers' slices may form, or have formed, one share with the changed one. */
void metering_users_changed(const Metering *metering, const char *uuid)
{
    const GPtrArray *slices = slices_all(metering->parts.slices);
    const Slice *changed = slices_find(metering->parts.slices, uuid);

    metering_slice_changed(metering, uuid);
    for (guint i = 0; changed && i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice != changed && slice->transport == SLICE_TRANSPORT_NATIVE &&
            g_str_equal(slice->gpu, changed->gpu) &&
            claims_container(metering->parts.claims, slice->uuid))
            metering_slice_changed(metering, slice->uuid);
    }
}

void metering_begin_anew(Metering *metering)
{
    evictions_forget(metering->parts.evictions);
}

static void take_findings(Metering *metering, GVariant *arguments)
{
    g_autoptr(GVariant) found = NULL;
    const char *gpu;

    g_variant_get(arguments, "(&s@aa{sv})", &gpu, &found);
    findings_set(metering->parts.findings, gpu, found);
}

static void take_memory(Metering *metering, GVariant *arguments)
{
    g_autofree const char **without = NULL;
    guint64 free, mark;
    const char *gpu;
    gint64 now_us;

    g_variant_get(arguments, "(&stt^a&sx)", &gpu, &free, &mark, &without, &now_us);
    evictions_note_memory(metering->parts.evictions, gpu, free, mark, without, now_us);
}

static void take_expected(Metering *metering, GVariant *arguments)
{
    g_autoptr(GVariant) expected = g_variant_get_child_value(arguments, 0);

    slices_set_expected(metering->parts.slices, expected);
}

static void take_event(Metering *metering, GVariant *arguments)
{
    const char *kind, *gpu, *slice, *text;

    g_variant_get(arguments, "(&s&s&s&s)", &kind, &gpu, &slice, &text);
    host_event(metering->parts.host, kind, gpu, slice, "%s", text);
}

static const struct {
    const char *name;
    void (*take)(Metering *metering, GVariant *arguments);
} methods[] = {
    {"SetFindings", take_findings},
    {"NoteMemory", take_memory},
    {"SetExpected", take_expected},
    {"TellEvent", take_event},
};

void metering_call(Metering *metering, const char *method, GVariant *arguments)
{
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++)
        if (g_str_equal(methods[i].name, method))
            methods[i].take(metering, arguments);
}

static void answer_report(GVariant *answer, const GError *error, void *data)
{
    GDBusMethodInvocation *invocation = data;

    if (answer)
        call_answer(invocation, answer);
    else
        call_fail(invocation, error);
}

static void ask_for_report(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Metering *metering = data;

    (void)caller;
    meter_ask(metering->parts.meter, "Report", g_dbus_method_invocation_get_parameters(invocation),
              answer_report, invocation);
}

/* Everybody may read the report of their own tenant. */
static void report_to_member(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Metering *metering = data;
    const char *tenant;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s&s)", &tenant, NULL);
    if (tenants_has_user(metering->parts.tenants, tenant, caller->user))
        authority_ask(invocation, ACTION_USE_OWN_TENANT, ask_for_report, metering);
    else
        authority_ask(invocation, ACTION_SEE, ask_for_report, metering);
}

Metering *metering_new(const MeteringParts *parts)
{
    Metering *metering = g_new0(Metering, 1);

    metering->parts = *parts;
    metering->started = g_get_real_time() / G_USEC_PER_SEC;
    authority_answer(host_manager(parts->host), "handle-report", ACTION_SEE, ask_for_report,
                     report_to_member, metering);
    return metering;
}

void metering_free(Metering *metering)
{
    g_signal_handlers_disconnect_by_data(host_manager(metering->parts.host), metering);
    g_free(metering);
}
