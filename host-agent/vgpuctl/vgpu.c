/* SPDX-License-Identifier: MIT */
/* vgpuctl vgpu: vGPUs, whoever made them. */
#include <stdio.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/table.h"
#include "host-agent/vgpuctl/text.h"
#include "host-agent/vgpuctl/vgpu_list.h"

#define NO_VGPU "This host has no vGPU."

static const char *const heads[] = {"VGPU",   "GPU",  "TYPE",  "DEVICE",
                                    "ENGINE", "VRAM", "CLASS", "TENANT", "VM"};

/* @vgpu, taken, with the VM that has it as one more member. */
static GVariant *with_vm(GVariant *vgpu, GVariant *vms)
{
    g_autoptr(GVariant) old = vgpu;
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(old);
    g_autofree char *uuid = dict_text(old, "Uuid");
    const char *vm = "";

    g_variant_lookup(vms, uuid, "&s", &vm);
    g_variant_dict_insert(&dict, "Vm", "s", vm);
    return g_variant_dict_end(&dict);
}

static GVariant *call_list(Client *client, GError **error)
{
    g_autoptr(GVariant) vgpus = NULL;
    g_autoptr(GVariant) vms = NULL;
    GVariantBuilder list;

    if (!vgpu_manager_call_list_vgpus_sync(client->manager, &vgpus, NULL, error) ||
        !vgpu_manager_call_list_vms_sync(client->manager, &vms, NULL, error))
        return NULL;
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(vgpus); i++)
        g_variant_builder_add_value(&list, with_vm(g_variant_get_child_value(vgpus, i), vms));
    return g_variant_ref_sink(g_variant_builder_end(&list));
}

static void add_row(Table *table, GVariant *vgpu)
{
    table_add(table, dict_text(vgpu, "Uuid"));
    table_add(table, dict_text(vgpu, "Gpu"));
    table_add(table, dict_text(vgpu, "Type"));
    table_add(table, dict_text(vgpu, "Device"));
    table_add(table, dict_text(vgpu, "Engine"));
    table_add(table, dict_bytes(vgpu, "Vram"));
    table_add(table, dict_text(vgpu, "Class"));
    table_add(table, dict_text(vgpu, "Tenant"));
    table_add(table, dict_text(vgpu, "Vm"));
}

void vgpu_print_list(GVariant *vgpus, gboolean json, const char *none)
{
    g_autoptr(Table) table = table_new_with_heads(heads, G_N_ELEMENTS(heads));

    if (json) {
        json_print(json_gvariant_serialize(vgpus));
        return;
    }
    if (!g_variant_n_children(vgpus)) {
        puts(none);
        return;
    }
    for (gsize i = 0; i < g_variant_n_children(vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);

        add_row(table, vgpu);
    }
    table_print(table);
}

/* The table alone needs little of all that there is to know. */
static gboolean print_short(const Client *client, GError **error)
{
    g_autoptr(GVariant) vgpus = NULL;
    g_autoptr(GVariant) vms = NULL;
    g_autoptr(Table) table = table_new_with_heads(heads, G_N_ELEMENTS(heads));
    const char *uuid, *gpu, *type, *device, *engine, *class, *tenant;
    guint64 vram;
    GVariantIter iter;

    if (!vgpu_manager_call_list_vgpus_short_sync(client->manager, &vgpus, NULL, error) ||
        !vgpu_manager_call_list_vms_sync(client->manager, &vms, NULL, error))
        return FALSE;
    if (!g_variant_n_children(vgpus)) {
        puts(NO_VGPU);
        return TRUE;
    }
    g_variant_iter_init(&iter, vgpus);
    while (g_variant_iter_next(&iter, "(&s&s&s&s&st&s&s)", &uuid, &gpu, &type, &device, &engine,
                               &vram, &class, &tenant)) {
        const char *vm = "";
        const char *texts[] = {uuid, gpu, type, device, engine, NULL, class, tenant, NULL};

        g_variant_lookup(vms, uuid, "&s", &vm);
        texts[G_N_ELEMENTS(texts) - 1] = vm;
        for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
            table_add(table, texts[i] ? g_strdup(texts[i]) : text_of_bytes(vram));
    }
    table_print(table);
    return TRUE;
}

gboolean vgpu_list_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) vgpus = NULL;

    (void)args;
    if (!options->json)
        return print_short(client, error);
    vgpus = call_list(client, error);
    if (!vgpus)
        return FALSE;
    vgpu_print_list(vgpus, TRUE, NO_VGPU);
    return TRUE;
}

static GVariant *find(GVariant *vgpus, const char *uuid, GError **error)
{
    for (gsize i = 0; i < g_variant_n_children(vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);
        g_autofree char *found = dict_text(vgpu, "Uuid");

        if (g_ascii_strcasecmp(found, uuid) == 0)
            return g_steal_pointer(&vgpu);
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
                "there is no vGPU %s; \"vgpuctl vgpu list\" shows those that there are",
                uuid);
    return NULL;
}

static void print_vgpu(GVariant *vgpu)
{
    g_autoptr(Table) table = table_new(2);

    table_add_pair(table, "vGPU", dict_text(vgpu, "Uuid"));
    table_add_pair(table, "GPU", dict_text(vgpu, "Gpu"));
    table_add_pair(table, "Type", dict_text(vgpu, "Type"));
    table_add_pair(table, "Tenant", dict_text(vgpu, "Tenant"));
    table_add_pair(table, "Class", dict_text(vgpu, "Class"));
    table_add_pair(table, "VM", dict_text(vgpu, "Vm"));
    table_add_pair(table, "Made for VM", dict_text(vgpu, "Domain"));
    table_add_pair(table, "Defined", dict_flag(vgpu, "Defined"));
    table_add_pair(table, "Started at boot", dict_flag(vgpu, "Autostart"));
    table_add_pair(table, "Device", dict_text(vgpu, "Device"));
    table_add_pair(table, "Engine", dict_text(vgpu, "Engine"));
    table_add_pair(table, "Engine gave up", dict_text(vgpu, "Failure"));
    table_add_pair(table, "Engines lost", dict_number(vgpu, "EngineLosses"));
    table_add_pair(table, "VRAM", dict_bytes(vgpu, "Vram"));
    table_add_pair(table, "Oversubscription", dict_bytes(vgpu, "Oversubscribe"));
    table_add_pair(table, "Of it in use", dict_bytes(vgpu, "Spilled"));
    table_add_pair(table, "Which goes by", dict_text(vgpu, "SpillKind"));
    table_add_pair(table, "Window", dict_bytes(vgpu, "Window"));
    table_add_pair(table, "Compute", dict_number(vgpu, "Compute"));
    table_add_pair(table, "Weight", dict_number(vgpu, "Weight"));
    table_add_pair(table, "Cap", dict_number(vgpu, "Cap"));
    table_add_pair(table, "Priority", dict_number(vgpu, "Priority"));
    table_add_pair(table, "GPU's engines", dict_text(vgpu, "Engines"));
    table_add_pair(table, "Display", dict_number(vgpu, "Display"));
    table_add_pair(table, "Job", dict_text(vgpu, "Job"));
    table_add_pair(table, "Replica", dict_text(vgpu, "Replica"));
    table_add_pair(table, "Requests", dict_number(vgpu, "Requests"));
    table_add_pair(table, "Doorbells", dict_number(vgpu, "Doorbells"));
    table_add_pair(table, "Interrupts", dict_number(vgpu, "Interrupts"));
    table_print(table);
}

gboolean vgpu_show_command(Client *client, const Options *options, char **args,
                           GError **error)
{
    g_autoptr(GVariant) vgpus = call_list(client, error);
    g_autoptr(GVariant) vgpu = vgpus ? find(vgpus, args[0], error) : NULL;

    if (!vgpu)
        return FALSE;
    if (options->json)
        json_print(json_gvariant_serialize(vgpu));
    else
        print_vgpu(vgpu);
    return TRUE;
}
