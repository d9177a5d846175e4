/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/old_names.h"

static const char *dict_text(GVariant *dict, const char *key)
{
    const char *text = "";

    g_variant_lookup(dict, key, "&s", &text);
    return text;
}

static GVariant *make_short(GVariant *slices)
{
    GVariantBuilder list;
    GVariantIter iter;
    GVariant *slice;

    g_variant_builder_init(&list, G_VARIANT_TYPE("a(ssssstss)"));
    g_variant_iter_init(&iter, slices);
    while (g_variant_iter_loop(&iter, "@a{sv}", &slice)) {
        guint64 vram = 0;

        g_variant_lookup(slice, "Vram", "t", &vram);
        g_variant_builder_add(&list, "(ssssstss)", dict_text(slice, "Uuid"),
                              dict_text(slice, "Gpu"), dict_text(slice, "Type"),
                              dict_text(slice, "Device"), dict_text(slice, "Engine"), vram,
                              dict_text(slice, "Class"), dict_text(slice, "Tenant"));
    }
    return g_variant_builder_end(&list);
}

static GVariant *make_pairs(GVariant *slices, const char *key)
{
    GVariantBuilder pairs;
    GVariantIter iter;
    GVariant *slice;

    g_variant_builder_init(&pairs, G_VARIANT_TYPE("a{ss}"));
    g_variant_iter_init(&iter, slices);
    while (g_variant_iter_loop(&iter, "@a{sv}", &slice))
        if (*dict_text(slice, key))
            g_variant_builder_add(&pairs, "{ss}", dict_text(slice, "Uuid"), dict_text(slice, key));
    return g_variant_builder_end(&pairs);
}

static GVariant *make_names(GVariant *slices)
{
    return make_pairs(slices, "Name");
}

static GVariant *make_vms(GVariant *slices)
{
    return make_pairs(slices, "Vm");
}

static GVariant *take_first(GVariant *slices)
{
    return g_variant_get_child_value(slices, 0);
}

static GVariant *list_of(GVariant *request)
{
    GVariant *list = g_variant_new_array(G_VARIANT_TYPE_VARDICT, &request, 1);

    return g_variant_new_tuple(&list, 1);
}

static GVariant *list_request(GVariant *old)
{
    g_autoptr(GVariant) request = g_variant_get_child_value(old, 0);

    return list_of(request);
}

/* What is there twice stays so, and is refused. */
static GVariant *list_request_for_vm(GVariant *old)
{
    g_autoptr(GVariant) request = g_variant_get_child_value(old, 0);
    GVariantBuilder builder;
    GVariantIter iter;
    GVariant *entry;

    if (g_variant_lookup(request, "Door", "s", NULL))
        return list_of(request);
    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(&builder, "{sv}", "Door", g_variant_new_string("vm"));
    g_variant_iter_init(&iter, request);
    while (g_variant_iter_loop(&iter, "@{sv}", &entry))
        g_variant_builder_add_value(&builder, entry);
    return list_of(g_variant_builder_end(&builder));
}

#define OF_VMS        "({'Doors': <['vm', 'vfio']>},)"
#define OF_CONTAINERS "({'Doors': <['vfio', 'native', 'guarded']>},)"
#define SHORT                                                                                      \
    "({'Doors': <['vm', 'vfio']>, 'Keys': <['Uuid', 'Gpu', 'Type', 'Device', 'Engine', 'Vram', "   \
    "'Class', 'Tenant']>},)"
#define NAMES "({'Keys': <['Uuid', 'Name']>},)"
#define VMS   "({'Keys': <['Uuid', 'Vm']>},)"

const OldName old_names[] = {
    {"handle-list-vgpus", "FindSlices", OF_VMS, NULL, NULL},
    {"handle-list-vgpus-short", "FindSlices", SHORT, NULL, make_short},
    {"handle-list-slices", "FindSlices", OF_CONTAINERS, NULL, NULL},
    {"handle-list-names", "FindSlices", NAMES, NULL, make_names},
    {"handle-list-vms", "FindSlices", VMS, NULL, make_vms},
    {"handle-create-vgpus", "CreateSlices", NULL, list_request_for_vm, NULL},
    {"handle-create-slice", "CreateSlices", NULL, list_request, take_first},
    {"handle-set-vgpu", "SetSlice", NULL, NULL, NULL},
    {"handle-start-vgpu", "StartSlice", NULL, NULL, NULL},
    {"handle-stop-vgpu", "StopSlice", NULL, NULL, NULL},
    {"handle-remove-vgpu", "RemoveSlice", NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

void old_name_translate(const OldName *old, GDBusMethodInvocation *invocation)
{
    GVariant *called = g_dbus_method_invocation_get_parameters(invocation);
    GVariant *parameters = NULL;

    if (old->asks)
        parameters = g_variant_new_parsed(old->asks);
    else if (old->parameters)
        parameters = old->parameters(called);
    call_translate(invocation, old->method, parameters, old->form);
}
