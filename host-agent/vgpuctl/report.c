/* SPDX-License-Identifier: MIT */
/* vgpuctl report: what tenants were promised in a month, what they used, and what would have been
 * enough. */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/listing.h"

static char *tenant;
static char *month;

const GOptionEntry report_options[] = {
    {"tenant", 0, 0, G_OPTION_ARG_STRING, &tenant, "Only of this tenant", "TENANT"},
    {"month", 0, 0, G_OPTION_ARG_STRING, &month, "As 2026-11, in UTC; default: this month",
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

static char *busy_share(GVariant *slice, const char *key)
{
    double all = number_of(slice, "Hours");

    return all > 0 ? g_strdup_printf("%.0f", number_of(slice, key) / all * 100) : NULL;
}

/* 0 is what is not known. */
static char *gpu_hours(GVariant *slice, const char *key)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    double seconds = number_of(slice, key);

    if (seconds <= 0)
        return g_strdup("not known");
    return g_strdup(g_ascii_formatd(text, sizeof(text), "%.1f", seconds / 3600));
}

static char *peak(GVariant *slice, const char *key)
{
    char *text = dict_bytes(slice, key);

    return text ? text : g_strdup("not known");
}

static const Column columns[] = {
    {"TENANT", "Tenant", dict_text, 0},
    {"VGPU", "Uuid", dict_text, 0},
    {"GPU", "Gpu", dict_text, 0},
    {"TYPE", "Type", dict_text, 0},
    {"HOURS", "Hours", hours, 0},
    {"VRAM GIBH", "VramHours", hours, 0},
    {"GPUS H", "ComputeHours", hours, 0},
    {"BUSY %", "BusyHours", busy_share, 0},
    {"GPU HOURS", "GpuSeconds", gpu_hours, 0},
    {"PEAK VRAM", "PeakVram", peak, 0},
    {"ADVICE", "Advice", dict_text, 0},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .name = "Uuid",
    .none = "Nothing is known of that month.",
};

gboolean report_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) slices = client_get(
        client, "Report", g_variant_new("(ss)", tenant ? tenant : "", month ? month : ""),
        "reading the report", error);

    (void)args;
    if (!slices)
        return FALSE;
    listing_print(options, &listing, slices);
    return TRUE;
}
