/* SPDX-License-Identifier: MIT */
/* vgpuctl vgpu: vGPUs, whoever made them. */
#include <stdio.h>

#include "command.h"
#include "dict.h"
#include "json.h"
#include "table.h"

static GVariant *call_list(const Client *client, GError **error)
{
    g_autoptr(VgpuManager) manager = client_manager(client, error);
    GVariant *vgpus = NULL;

    if (manager)
        vgpu_manager_call_list_vgpus_sync(manager, &vgpus, NULL, error);
    return vgpus;
}

static void add_row(Table *table, GVariant *vgpu)
{
    table_add(table, dict_text(vgpu, "Uuid"));
    table_add(table, dict_text(vgpu, "Gpu"));
    table_add(table, dict_text(vgpu, "Type"));
    table_add(table, dict_text(vgpu, "Device"));
    table_add(table, dict_text(vgpu, "Engine"));
    table_add(table, dict_bytes(vgpu, "Vram"));
    table_add(table, dict_number(vgpu, "Weight"));
    table_add(table, dict_number(vgpu, "Cap"));
}

gboolean vgpu_list_command(const Client *client, const Options *options, char **args,
                           GError **error)
{
    static const char *const heads[] = {"VGPU",   "GPU",  "TYPE",   "DEVICE",
                                        "ENGINE", "VRAM", "WEIGHT", "CAP"};
    g_autoptr(GVariant) vgpus = call_list(client, error);
    g_autoptr(Table) table = table_new(G_N_ELEMENTS(heads));

    (void)args;
    if (!vgpus)
        return FALSE;
    if (options->json) {
        json_print(json_gvariant_serialize(vgpus));
        return TRUE;
    }
    if (!g_variant_n_children(vgpus)) {
        puts("This host has no vGPU.");
        return TRUE;
    }
    for (guint i = 0; i < G_N_ELEMENTS(heads); i++)
        table_add(table, g_strdup(heads[i]));
    for (gsize i = 0; i < g_variant_n_children(vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);

        add_row(table, vgpu);
    }
    table_print(table);
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
                "there is no vGPU %s; \"vgpuctl vgpu list\" shows those that are started, and "
                "\"mdevctl list --defined\" those that are defined",
                uuid);
    return NULL;
}

static void add_pair(Table *table, const char *name, char *value)
{
    table_add(table, g_strconcat(name, ":", NULL));
    table_add(table, value);
}

static void print_vgpu(GVariant *vgpu)
{
    g_autoptr(Table) table = table_new(2);

    add_pair(table, "vGPU", dict_text(vgpu, "Uuid"));
    add_pair(table, "GPU", dict_text(vgpu, "Gpu"));
    add_pair(table, "Type", dict_text(vgpu, "Type"));
    add_pair(table, "Device", dict_text(vgpu, "Device"));
    add_pair(table, "Engine", dict_text(vgpu, "Engine"));
    add_pair(table, "Engine gave up", dict_text(vgpu, "Failure"));
    add_pair(table, "Engines lost", dict_number(vgpu, "EngineLosses"));
    add_pair(table, "VRAM", dict_bytes(vgpu, "Vram"));
    add_pair(table, "Window", dict_bytes(vgpu, "Window"));
    add_pair(table, "Weight", dict_number(vgpu, "Weight"));
    add_pair(table, "Cap", dict_number(vgpu, "Cap"));
    add_pair(table, "Priority", dict_number(vgpu, "Priority"));
    add_pair(table, "Requests", dict_number(vgpu, "Requests"));
    add_pair(table, "Doorbells", dict_number(vgpu, "Doorbells"));
    add_pair(table, "Interrupts", dict_number(vgpu, "Interrupts"));
    table_print(table);
}

gboolean vgpu_show_command(const Client *client, const Options *options, char **args,
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
