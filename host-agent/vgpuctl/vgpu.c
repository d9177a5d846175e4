/* SPDX-License-Identifier: MIT */
/* vgpuctl vgpu: vGPUs, whoever made them. */
#include <stdio.h>

#include "command.h"
#include "json.h"
#include "table.h"
#include "text.h"

static GVariant *call_list(const Client *client, GError **error)
{
    g_autoptr(VgpuManager) manager = client_manager(client, error);
    GVariant *vgpus = NULL;

    if (manager)
        vgpu_manager_call_list_vgpus_sync(manager, &vgpus, NULL, error);
    return vgpus;
}

static char *text_of(GVariant *vgpu, const char *key)
{
    char *text = NULL;

    g_variant_lookup(vgpu, key, "s", &text);
    return text;
}

static char *number_of(GVariant *vgpu, const char *key)
{
    g_autoptr(GVariant) value = g_variant_lookup_value(vgpu, key, NULL);

    return value ? g_variant_print(value, FALSE) : NULL;
}

static char *bytes_of(GVariant *vgpu, const char *key)
{
    guint64 bytes = 0;

    g_variant_lookup(vgpu, key, "t", &bytes);
    return text_of_bytes(bytes);
}

static void add_row(Table *table, GVariant *vgpu)
{
    table_add(table, text_of(vgpu, "Uuid"));
    table_add(table, text_of(vgpu, "Gpu"));
    table_add(table, text_of(vgpu, "Type"));
    table_add(table, text_of(vgpu, "Device"));
    table_add(table, text_of(vgpu, "Engine"));
    table_add(table, bytes_of(vgpu, "Vram"));
    table_add(table, number_of(vgpu, "Weight"));
    table_add(table, number_of(vgpu, "Cap"));
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
        g_autofree char *found = text_of(vgpu, "Uuid");

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

    add_pair(table, "vGPU", text_of(vgpu, "Uuid"));
    add_pair(table, "GPU", text_of(vgpu, "Gpu"));
    add_pair(table, "Type", text_of(vgpu, "Type"));
    add_pair(table, "Device", text_of(vgpu, "Device"));
    add_pair(table, "Engine", text_of(vgpu, "Engine"));
    add_pair(table, "Engine gave up", text_of(vgpu, "Failure"));
    add_pair(table, "Engines lost", number_of(vgpu, "EngineLosses"));
    add_pair(table, "VRAM", bytes_of(vgpu, "Vram"));
    add_pair(table, "Window", bytes_of(vgpu, "Window"));
    add_pair(table, "Weight", number_of(vgpu, "Weight"));
    add_pair(table, "Cap", number_of(vgpu, "Cap"));
    add_pair(table, "Priority", number_of(vgpu, "Priority"));
    add_pair(table, "Requests", number_of(vgpu, "Requests"));
    add_pair(table, "Doorbells", number_of(vgpu, "Doorbells"));
    add_pair(table, "Interrupts", number_of(vgpu, "Interrupts"));
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
