/* SPDX-License-Identifier: MIT */
/* vgpuctl report: what tenants were promised in a month, what they used, and what would have done.
 */
#include <stdio.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/table.h"

static char *tenant;
static char *month;

const GOptionEntry report_options[] = {
    {"tenant", 0, 0, G_OPTION_ARG_STRING, &tenant, "Only of this tenant", "TENANT"},
    {"month", 0, 0, G_OPTION_ARG_STRING, &month, "As 2026-11, in UTC; this month where left out",
     "MONTH"},
    G_OPTION_ENTRY_NULL,
};

static double number_of(GVariant *slice, const char *key)
{
    double number = 0;

    g_variant_lookup(slice, key, "d", &number);
    return number;
}

/* Hours to a tenth. */
static char *hours(GVariant *slice, const char *key)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    return g_strdup(g_ascii_formatd(text, sizeof(text), "%.1f", number_of(slice, key)));
}

static char *busy_share(GVariant *slice)
{
    double all = number_of(slice, "Hours");

    return all > 0 ? g_strdup_printf("%.0f", number_of(slice, "BusyHours") / all * 100) : NULL;
}

/* 0 is what is not known. */
static char *gpu_hours(GVariant *slice)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    double seconds = number_of(slice, "GpuSeconds");

    if (seconds <= 0)
        return g_strdup("not known");
    return g_strdup(g_ascii_formatd(text, sizeof(text), "%.1f", seconds / 3600));
}

static char *peak(GVariant *slice)
{
    char *text = dict_bytes(slice, "PeakVram");

    return text ? text : g_strdup("not known");
}

static void add_row(Table *table, GVariant *slice)
{
    table_add(table, dict_text(slice, "Tenant"));
    table_add(table, dict_text(slice, "Uuid"));
    table_add(table, dict_text(slice, "Gpu"));
    table_add(table, dict_text(slice, "Type"));
    table_add(table, hours(slice, "Hours"));
    table_add(table, hours(slice, "VramHours"));
    table_add(table, hours(slice, "ComputeHours"));
    table_add(table, busy_share(slice));
    table_add(table, gpu_hours(slice));
    table_add(table, peak(slice));
    table_add(table, dict_text(slice, "Advice"));
}

static void print_table(GVariant *slices)
{
    static const char *const heads[] = {"TENANT",    "VGPU",      "GPU",    "TYPE",
                                        "HOURS",     "VRAM GIBH", "GPUS H", "BUSY %",
                                        "GPU HOURS", "PEAK VRAM", "ADVICE"};
    g_autoptr(Table) table = table_new_with_heads(heads, G_N_ELEMENTS(heads));

    for (gsize i = 0; i < g_variant_n_children(slices); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(slices, i);

        add_row(table, slice);
    }
    table_print(table);
}

gboolean report_command(Client *client, const Options *options, char **args, GError **error)
{
    VgpuManager *manager = client->manager;
    g_autoptr(GVariant) slices = NULL;

    (void)args;
    if (!vgpu_manager_call_report_sync(manager, tenant ? tenant : "",
                                                   month ? month : "", &slices, NULL, error))
        return FALSE;
    if (options->json)
        json_print(json_gvariant_serialize(slices));
    else if (g_variant_n_children(slices))
        print_table(slices);
    else
        puts("Nothing is known of that month.");
    return TRUE;
}
