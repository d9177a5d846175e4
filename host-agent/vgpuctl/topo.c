/* SPDX-License-Identifier: MIT */
/* vgpuctl topo: which GPUs are near each other. */
#include <stdio.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/table.h"

static const char legend[] = "\n"
                             "  X     the GPU itself\n"
                             "  PIX   at most one PCIe switch between them\n"
                             "  PXB   several PCIe switches\n"
                             "  PHB   a PCIe host bridge\n"
                             "  NODE  host bridges of one NUMA node\n"
                             "  SYS   NUMA nodes\n";

static void print_table(char **gpus, GVariant *distances)
{
    guint count = g_strv_length(gpus);
    g_autoptr(Table) table = table_new(count + 1);

    table_add(table, g_strdup("GPU"));
    for (guint i = 0; i < count; i++)
        table_add(table, g_strdup(gpus[i]));
    for (guint i = 0; i < count; i++) {
        g_autoptr(GVariant) row = g_variant_get_child_value(distances, i);

        table_add(table, g_strdup(gpus[i]));
        for (guint k = 0; k < count; k++) {
            char *distance;

            g_variant_get_child(row, k, "s", &distance);
            table_add(table, distance);
        }
    }
    table_print(table);
    fputs(legend, stdout);
}

static void print_json(char **gpus, GVariant *distances)
{
    JsonObject *object = json_object_new();
    GVariant *list = g_variant_ref_sink(g_variant_new_strv((const char *const *)gpus, -1));

    json_object_set_member(object, "gpus", json_gvariant_serialize(list));
    json_object_set_member(object, "distances", json_gvariant_serialize(distances));
    g_variant_unref(list);
    json_print(json_node_init_object(json_node_alloc(), object));
    json_object_unref(object);
}

gboolean topo_command(Client *client, const Options *options, char **args, GError **error)
{
    VgpuManager *manager = client->manager;
    g_auto(GStrv) gpus = NULL;
    g_autoptr(GVariant) distances = NULL;

    (void)args;
    if (!vgpu_manager_call_get_topology_sync(manager, &gpus, &distances, NULL, error))
        return FALSE;
    if (options->json)
        print_json(gpus, distances);
    else
        print_table(gpus, distances);
    return TRUE;
}
