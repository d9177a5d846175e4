/* SPDX-License-Identifier: MIT */
/* vgpuctl vgpu list, show: vGPUs, whoever created them. */
#include "host-agent/vgpuctl/vgpu.h"

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/filter.h"
#include "host-agent/vgpuctl/objects.h"

static const Column columns[] = {
    {"VGPU", "Uuid", dict_text, 0},
    {"GPU", "Gpu", dict_text, 0},
    {"TYPE", "Type", dict_text, 0},
    {"DEVICE", "Device", dict_text, COLUMN_STATE},
    {"ENGINE", "Engine", dict_text, COLUMN_STATE},
    {"VRAM", "Vram", dict_bytes, 0},
    {"USED", "VramUsed", dict_bytes, COLUMN_WIDE},
    {"CLASS", "Class", dict_text, 0},
    {"COMPUTE", "Compute", dict_number, COLUMN_WIDE},
    {"WEIGHT", "Weight", dict_number, COLUMN_WIDE},
    {"CAP", "Cap", dict_number, COLUMN_WIDE},
    {"DEFINED", "Defined", dict_flag, COLUMN_WIDE},
    {"BOOT", "Autostart", dict_flag, COLUMN_WIDE},
    {"TENANT", "Tenant", dict_text, 0},
    {"VM", "Vm", dict_text, 0},
    {"NAME", "Name", dict_text, 0},
};

static const Column lines[] = {
    {"vGPU", "Uuid", dict_text, 0},
    {"Name", "Name", dict_text, 0},
    {"GPU", "Gpu", dict_text, 0},
    {"Type", "Type", dict_text, 0},
    {"Tenant", "Tenant", dict_text, 0},
    {"Class", "Class", dict_text, 0},
    {"VM", "Vm", dict_text, 0},
    {"Created for VM", "Domain", dict_text, 0},
    {"Defined", "Defined", dict_flag, 0},
    {"Started at boot", "Autostart", dict_flag, 0},
    {"Device", "Device", dict_text, COLUMN_STATE},
    {"Engine", "Engine", dict_text, COLUMN_STATE},
    {"Engine failure", "Failure", dict_text, 0},
    {"Engines lost", "EngineLosses", dict_number, 0},
    {"VRAM", "Vram", dict_bytes, 0},
    {"VRAM used", "VramUsed", dict_bytes, 0},
    {"Oversubscription", "Oversubscribe", dict_bytes, 0},
    {"Oversubscription used", "Spilled", dict_bytes, 0},
    {"Spill target", "SpillKind", dict_text, 0},
    {"Window", "Window", dict_bytes, 0},
    {"Compute", "Compute", dict_number, 0},
    {"Weight", "Weight", dict_number, 0},
    {"Cap", "Cap", dict_number, 0},
    {"Priority", "Priority", dict_number, 0},
    {"GPU's engines", "Engines", dict_text, 0},
    {"Display", "Display", dict_number, 0},
    {"Job", "Job", dict_text, 0},
    {"Replica", "Replica", dict_text, 0},
    {"Requests", "Requests", dict_number, 0},
    {"Doorbells", "Doorbells", dict_number, 0},
    {"Interrupts", "Interrupts", dict_number, 0},
};

const Listing vgpu_listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .lines = lines,
    .lines_count = G_N_ELEMENTS(lines),
    .name = "Uuid",
    .none = "This host has no vGPU.",
};

static const char *const state_keys[] = {"Device", "Engine", NULL};
static const char *const states[] = {"running", "open",   "closed",   "stopped", "lost", "removed",
                                     "ready",   "failed", "starting", "none",    NULL};
static const Filter filter = {"Gpu", "Tenant", "Type", state_keys, states};

/* @vgpu, taken, with the VM that has it as one more member. */
static GVariant *with_vm(GVariant *vgpu, GVariant *vms)
{
    g_autoptr(GVariant) old = vgpu;
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(old);
    const char *uuid = "";
    const char *vm = "";

    g_variant_lookup(old, "Uuid", "&s", &uuid);
    g_variant_lookup(vms, uuid, "&s", &vm);
    g_variant_dict_insert(&dict, "Vm", "s", vm);
    return g_variant_dict_end(&dict);
}

GVariant *vgpu_list_all(const Client *client, GError **error)
{
    g_autoptr(GVariant) vgpus = client_get(client, "ListVgpus", NULL, "listing vGPUs", error);
    g_autoptr(GVariant) vms = vgpus ? client_get(client, "ListVms", NULL, NULL, error) : NULL;
    GVariantBuilder list;

    if (!vms)
        return NULL;
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(vgpus); i++)
        g_variant_builder_add_value(&list, with_vm(g_variant_get_child_value(vgpus, i), vms));
    return g_variant_ref_sink(g_variant_builder_end(&list));
}

/* A vGPU of ListVgpusShort in the words of ListVgpus. */
static GVariant *object_of_short(GVariant *vgpu, GVariant *vms)
{
    static const char *const keys[] = {"Uuid", "Gpu",   "Type",   "Device", "Engine",
                                       "Vram", "Class", "Tenant", "Name"};
    GVariantBuilder dict;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    for (gsize i = 0; i < MIN(G_N_ELEMENTS(keys), g_variant_n_children(vgpu)); i++) {
        g_autoptr(GVariant) value = g_variant_get_child_value(vgpu, i);

        g_variant_builder_add(&dict, "{sv}", keys[i], value);
    }
    return with_vm(g_variant_ref_sink(g_variant_builder_end(&dict)), vms);
}

/* Names, of UUID to name, of those that have one. */
static GVariant *with_name(GVariant *vgpu, GVariant *names)
{
    g_autoptr(GVariant) old = g_variant_ref_sink(vgpu);
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(old);
    const char *uuid = "";
    const char *name = "";

    g_variant_lookup(old, "Uuid", "&s", &uuid);
    g_variant_lookup(names, uuid, "&s", &name);
    g_variant_dict_insert(&dict, "Name", "s", name);
    return g_variant_dict_end(&dict);
}

/* The table alone needs little of all that there is to know. */
static GVariant *list_short(const Client *client, GError **error)
{
    g_autoptr(GVariant) vgpus = client_get(client, "ListVgpusShort", NULL, "listing vGPUs", error);
    g_autoptr(GVariant) vms = vgpus ? client_get(client, "ListVms", NULL, NULL, error) : NULL;
    g_autoptr(GVariant) names = vms ? client_get(client, "ListNames", NULL, NULL, error) : NULL;
    GVariantBuilder list;

    if (!names)
        return NULL;
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);

        g_variant_builder_add_value(&list, with_name(object_of_short(vgpu, vms), names));
    }
    return g_variant_ref_sink(g_variant_builder_end(&list));
}

gboolean vgpu_list_command(Client *client, const Options *options, char **args, GError **error)
{
    gboolean full = output_is_document(options) || options->format == FORMAT_WIDE;
    g_autoptr(GVariant) list = full ? vgpu_list_all(client, error) : list_short(client, error);

    (void)args;
    if (list)
        list = filter_apply(g_steal_pointer(&list), &filter, error);
    if (!list)
        return FALSE;
    listing_print(options, &vgpu_listing, list);
    return TRUE;
}

gboolean vgpu_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) vgpus = vgpu_list_all(client, error);

    return vgpus && objects_show(options, &vgpu_listing, vgpus, args, object_is_slice, "vGPU",
                                 "vgpu list", error);
}
