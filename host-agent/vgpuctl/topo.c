/* SPDX-License-Identifier: MIT */
/* vgpuctl topo: which GPUs are near each other. */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/listing.h"

static const char legend[] = "\n"
                             "  X     the GPU itself\n"
                             "  PIX   at most one PCIe switch between them\n"
                             "  PXB   several PCIe switches\n"
                             "  PHB   a PCIe host bridge\n"
                             "  NODE  host bridges of one NUMA node\n"
                             "  SYS   NUMA nodes\n";

static void print_table(const Options *options, char **gpus, GVariant *distances)
{
    guint count = g_strv_length(gpus);
    g_autoptr(GPtrArray) heads = g_ptr_array_new();
    g_autoptr(GPtrArray) cells = g_ptr_array_new();

    g_ptr_array_add(heads, (char *)"GPU");
    for (guint i = 0; i < count; i++) {
        g_autoptr(GVariant) row = g_variant_get_child_value(distances, i);

        g_ptr_array_add(heads, gpus[i]);
        g_ptr_array_add(cells, gpus[i]);
        for (guint k = 0; k < count; k++) {
            const char *distance;

            g_variant_get_child(row, k, "&s", &distance);
            g_ptr_array_add(cells, (char *)distance);
        }
    }
    listing_print_cells(options, (const char *const *)heads->pdata, count + 1, cells);
    if (!options->no_headers)
        fputs(legend, options->out);
}

static void print_document(const Options *options, GVariant *gpus, GVariant *distances)
{
    JsonObject *object = json_object_new();

    json_object_set_member(object, "gpus", json_gvariant_serialize(gpus));
    json_object_set_member(object, "distances", json_gvariant_serialize(distances));
    output_node(options, json_node_init_object(json_node_alloc(), object));
    json_object_unref(object);
}

gboolean topo_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) answer = client_call(client, "GetTopology", NULL, NULL, error);
    g_autoptr(GVariant) list = NULL;
    g_autoptr(GVariant) distances = NULL;
    g_autofree const char **gpus = NULL;

    (void)args;
    if (!answer)
        return FALSE;
    list = g_variant_get_child_value(answer, 0);
    distances = g_variant_get_child_value(answer, 1);
    gpus = g_variant_get_strv(list, NULL);
    if (output_is_document(options))
        print_document(options, list, distances);
    else
        print_table(options, (char **)gpus, distances);
    return TRUE;
}
