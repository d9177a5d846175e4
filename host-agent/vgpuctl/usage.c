/* SPDX-License-Identifier: MIT */
/*
 * vgpuctl tenant, report, top: what tenants may use, what they were promised and used, and what is
 * used now.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/output.h"
#include "host-agent/vgpuctl/slice.h"
#include "host-agent/vgpuctl/slice_options.h"
#include "lib/conf.h"

/* vgpuctl tenant: who may have how much. */

static char *vram;
static char *displaced;
static int compute = -1;
static int vgpus = -1;
static char **models;
static char **users;
static gboolean dry_run;

const GOptionEntry tenant_set_options[] = {
    {"vram", 0, 0, G_OPTION_ARG_STRING, &vram, "GPU memory in total; 0: no limit", "SIZE"},
    {"compute", 0, 0, G_OPTION_ARG_INT, &compute,
     "Compute in total, in per cent of one GPU; 0: no limit", "N"},
    {"vgpus", 0, 0, G_OPTION_ARG_INT, &vgpus, "How many vGPUs and slices; 0: no limit", "N"},
    {"displaced", 0, 0, G_OPTION_ARG_STRING, &displaced,
     "The hosts' memory for GPU memory that moves, in total; 0: no limit", "SIZE"},
    {"model", 0, 0, G_OPTION_ARG_STRING_ARRAY, &models,
     "GPUs that it may use, by id (10de:*) or name; once for each", "PATTERN"},
    {"user", 0, 0, G_OPTION_ARG_STRING_ARRAY, &users, "Who may use it; once for each", "USER"},
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only check whether it is possible", NULL},
    G_OPTION_ENTRY_NULL,
};

/* "4.0 GiB of 8.0 GiB". Takes both. */
static char *used_part(char *used, char *most)
{
    char *text = g_strdup_printf("%s of %s", used ? used : "0", most ? most : "any");

    g_free(used);
    g_free(most);
    return text;
}

/* @key: of the quota; with Used before it, of what is used. */
static char *bytes_part(GVariant *tenant, const char *key)
{
    g_autofree char *used = g_strconcat("Used", key, NULL);

    return used_part(dict_bytes(tenant, used), dict_bytes(tenant, key));
}

static char *number_part(GVariant *tenant, const char *key)
{
    g_autofree char *used = g_strconcat("Used", key, NULL);

    return used_part(dict_limit(tenant, used), dict_limit(tenant, key));
}

static char *words_text(GVariant *tenant, const char *key)
{
    return dict_list(tenant, key, " ");
}

static const Column tenant_columns[] = {
    {"TENANT", "Name", dict_text, 0},
    {"VRAM", "Vram", bytes_part, 0},
    {"COMPUTE %", "Compute", number_part, 0},
    {"VGPUS", "Vgpus", number_part, 0},
    {"MODELS", "Models", words_text, 0},
    {"USERS", "Users", words_text, COLUMN_LONG},
    {"SET BY", "Source", dict_text, COLUMN_STATE},
};

static const Column lines[] = {
    {"Tenant", "Name", dict_text, 0},
    {"VRAM", "Vram", bytes_part, 0},
    {"Compute %", "Compute", number_part, 0},
    {"vGPUs and slices", "Vgpus", number_part, 0},
    {"Host memory", "Displaced", bytes_part, 0},
    {"GPU models", "Models", words_text, 0},
    {"Users", "Users", words_text, 0},
    {"Set by", "Source", dict_text, 0},
};

static const Listing tenant_listing = {
    .columns = tenant_columns,
    .columns_count = G_N_ELEMENTS(tenant_columns),
    .lines = lines,
    .lines_count = G_N_ELEMENTS(lines),
    .name = "Name",
    .none = "There is no tenant; \"vgpuctl tenant set NAME\" creates one.",
};

gboolean tenant_list_command(Client *client, const Options *options, char **args, GError **error)
{
    static const Filter filter = {.tenant = "Name"};

    (void)args;
    return objects_list(options, &tenant_listing,
                        client_get(client, "ListTenants", NULL, NULL, error), &filter, error);
}

gboolean tenant_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) tenants = client_get(client, "ListTenants", NULL, NULL, error);

    return tenants && objects_show(options, &tenant_listing, tenants, args, object_is_named,
                                   "tenant", "tenant list", error);
}

gboolean tenant_set_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    g_autoptr(GVariant) answer = NULL;

    (void)options;
    call_dict_add_number(&dict, "Compute", compute);
    call_dict_add_number(&dict, "Vgpus", vgpus);
    call_dict_add_list(&dict, "Models", models);
    call_dict_add_list(&dict, "Users", users);
    call_dict_add_flag(&dict, "DryRun", dry_run);
    if (!call_dict_add_size(&dict, "Vram", "--vram", vram, TRUE, error) ||
        !call_dict_add_size(&dict, "Displaced", "--displaced", displaced, TRUE, error))
        return FALSE;
    answer =
        client_call(client, "SetTenant",
                    g_variant_new("(s@a{sv})", args[0], g_variant_dict_end(&dict)), NULL, error);
    return answer != NULL;
}

static gboolean remove_tenant(Client *client, const char *name, void *data, GError **error)
{
    g_autoptr(GVariant) answer =
        client_call(client, "RemoveTenant", g_variant_new("(s)", name), NULL, error);

    (void)data;
    return answer != NULL;
}

gboolean tenant_remove_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return each_name(client, args, "removing tenants", remove_tenant, NULL, error);
}

/* vgpuctl report: what tenants were promised in a month, what they used, and what would have been
 * enough. */

static char *tenant;
static char *month;

const GOptionEntry report_options[] = {
    {"tenant", 0, 0, G_OPTION_ARG_STRING, &tenant, "Only of this tenant", "TENANT"},
    {"month", 0, 0, G_OPTION_ARG_STRING, &month,
     "As 2026-11, or 2026 for a year, in UTC; default: this month", "MONTH"},
    G_OPTION_ENTRY_NULL,
};

static double number_of(GVariant *slice, const char *key)
{
    g_autoptr(GVariant) value = g_variant_lookup_value(slice, key, G_VARIANT_TYPE_DOUBLE);

    return value ? g_variant_get_double(value) : 0;
}

/* Hours to a tenth. */
static char *hours_text(GVariant *slice, const char *key)
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

static char *peak_text(GVariant *slice, const char *key)
{
    char *text = dict_bytes(slice, key);

    return text ? text : g_strdup("not known");
}

static const Column report_columns[] = {
    {"TENANT", "Tenant", dict_text, 0},
    {"VGPU", "Uuid", dict_text, 0},
    {"GPU", "Gpu", dict_text, 0},
    {"TYPE", "Type", dict_text, 0},
    {"HOURS", "Hours", hours_text, 0},
    {"VRAM GIBH", "VramHours", hours_text, 0},
    {"GPUS H", "ComputeHours", hours_text, 0},
    {"BUSY %", "BusyHours", busy_share, 0},
    {"GPU HOURS", "GpuSeconds", gpu_hours, 0},
    {"PEAK VRAM", "PeakVram", peak_text, 0},
    {"ADVICE", "Advice", dict_text, 0},
};

static const Listing report_listing = {
    .columns = report_columns,
    .columns_count = G_N_ELEMENTS(report_columns),
    .name = "Uuid",
    .none = "Nothing is known of that time.",
};

gboolean report_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) slices = client_get(
        client, "Report", g_variant_new("(ss)", tenant ? tenant : "", month ? month : ""),
        "reading the report", error);

    (void)args;
    if (!slices)
        return FALSE;
    listing_print(options, &report_listing, slices);
    return TRUE;
}

/* vgpuctl top: what vGPUs, and slices of containers and programs, do, second by second. */

#define SECOND_US G_USEC_PER_SEC
#define NS        1e9
/* Cursor to the upper left, and all after it blank. */
#define CLEAR "\033[H\033[J"

static gboolean once;

const GOptionEntry top_options[] = {
    {"once", 0, 0, G_OPTION_ARG_NONE, &once, "Print one table, and exit", NULL},
    G_OPTION_ENTRY_NULL,
};

/**
 * Look - all of them at a moment, microseconds
 * @slices: in the order of their UUIDs
 * @by_uuid: the same by their UUIDs
 */
typedef struct {
    GPtrArray *slices;
    GHashTable *by_uuid;
    gint64 at;
} Look;

static void look_clear(Look *look)
{
    g_clear_pointer(&look->by_uuid, g_hash_table_unref);
    g_clear_pointer(&look->slices, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Look, look_clear)

static gboolean look_at(const Client *client, const Options *options, Look *look, GError **error)
{
    g_autoptr(GVariant) list = slices_get(client, NULL, NULL, error);

    if (list)
        warn_of_meter(options, list);
    look->at = g_get_monotonic_time();
    look->slices = g_ptr_array_new_with_free_func((GDestroyNotify)g_variant_unref);
    look->by_uuid = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (gsize i = 0; list && i < g_variant_n_children(list); i++) {
        GVariant *slice = g_variant_get_child_value(list, i);

        g_ptr_array_add(look->slices, slice);
        g_hash_table_insert(look->by_uuid, dict_text(slice, "Uuid"), slice);
    }
    return list != NULL;
}

/* How much the counter has grown in a second; NAN: nobody reports it, or the vGPU has just come. */
static double rate_of(GVariant *before, GVariant *now, const char *key, gint64 us)
{
    guint64 then = 0;
    guint64 value = 0;

    if (!before || !g_variant_lookup(before, key, "t", &then) ||
        !g_variant_lookup(now, key, "t", &value))
        return NAN;
    return value < then ? 0 : (double)(value - then) * SECOND_US / (double)us;
}

typedef struct {
    double gpu;    /* per cent of its time */
    double waited; /* seconds for each second */
    double moved;  /* bytes */
    double memory_waited;
    double requests;
    double doorbells;
} Rates;

static Rates rates_of(const Look *before, const Look *now, GVariant *vgpu)
{
    g_autofree char *uuid = dict_text(vgpu, "Uuid");
    GVariant *then = g_hash_table_lookup(before->by_uuid, uuid);
    gint64 us = MAX(now->at - before->at, 1);

    return (Rates){
        .gpu = rate_of(then, vgpu, "GpuTime", us) / NS * 100,
        .waited = rate_of(then, vgpu, "Waited", us) / NS,
        .moved = rate_of(then, vgpu, "Moved", us),
        .memory_waited = rate_of(then, vgpu, "MemoryWaited", us) / NS,
        .requests = rate_of(then, vgpu, "Requests", us),
        .doorbells = rate_of(then, vgpu, "Doorbells", us),
    };
}

/* What each second has, as members of the vGPU; they are left out if nobody reports them. */
static void add_rate(GVariantDict *dict, const char *name, double value)
{
    if (!isnan(value))
        g_variant_dict_insert(dict, name, "d", value);
}

static GVariant *with_rates(const Look *before, const Look *now, GVariant *vgpu)
{
    const Rates rates = rates_of(before, now, vgpu);
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(vgpu);

    add_rate(&dict, "GpuPercent", rates.gpu);
    add_rate(&dict, "WaitedPerSecond", rates.waited);
    add_rate(&dict, "MovedPerSecond", rates.moved);
    add_rate(&dict, "MemoryWaitedPerSecond", rates.memory_waited);
    add_rate(&dict, "RequestsPerSecond", rates.requests);
    add_rate(&dict, "DoorbellsPerSecond", rates.doorbells);
    return g_variant_dict_end(&dict);
}

static char *number_text(GVariant *vgpu, const char *key, const char *format)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    double value;

    if (!g_variant_lookup(vgpu, key, "d", &value))
        return NULL;
    return g_strdup(g_ascii_formatd(text, sizeof(text), format, value));
}

static char *whole_text(GVariant *vgpu, const char *key)
{
    return number_text(vgpu, key, "%.0f");
}

static char *hundredths_text(GVariant *vgpu, const char *key)
{
    return number_text(vgpu, key, "%.2f");
}

/* "1.2 GiB of 8.0 GiB" */
static char *vram_text(GVariant *vgpu, const char *key)
{
    g_autofree char *promised = dict_bytes(vgpu, key);
    g_autofree char *used = dict_bytes(vgpu, "VramUsed");

    return used ? g_strdup_printf("%s of %s", used, promised) : g_steal_pointer(&promised);
}

/* "512.0 MiB", what moves in a second */
static char *moved_text(GVariant *vgpu, const char *key)
{
    double value;

    return g_variant_lookup(vgpu, key, "d", &value) ? size_format((guint64)value) : NULL;
}

static const Column top_columns[] = {
    {"SLICE", "Uuid", dict_text, 0},
    {"NAME", "Name", dict_text, COLUMN_WIDE},
    {"GPU", "Gpu", dict_text, 0},
    {"TENANT", "Tenant", dict_text, 0},
    {"CONTAINER", "Container", dict_text, COLUMN_WIDE},
    {"CLASS", "Class", dict_text, 0},
    {"GPU %", "GpuPercent", whole_text, 0},
    {"WAIT S/S", "WaitedPerSecond", hundredths_text, 0},
    {"VRAM", "Vram", vram_text, 0},
    {"RESIDENT", "OnGpu", dict_bytes, 0},
    {"FLOOR", "Unmovable", dict_bytes, 0},
    {"OUT", "Displaced", dict_bytes, 0},
    {"MOVED/S", "MovedPerSecond", moved_text, 0},
    {"MEM WAIT S/S", "MemoryWaitedPerSecond", hundredths_text, 0},
    {"REQUESTS/S", "RequestsPerSecond", whole_text, 0},
    {"DOORBELLS/S", "DoorbellsPerSecond", whole_text, 0},
    {"ENGINE", "Engine", dict_text, COLUMN_STATE},
};

static const Listing top_listing = {
    .columns = top_columns,
    .columns_count = G_N_ELEMENTS(top_columns),
    .name = "Uuid",
    .none = "This host has no vGPU and no slice.",
};

static void print_rates(const Options *options, const Look *before, const Look *now)
{
    g_autoptr(GVariant) list = NULL;
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < now->slices->len; i++)
        g_variant_builder_add_value(&builder, with_rates(before, now, now->slices->pdata[i]));
    list = g_variant_ref_sink(g_variant_builder_end(&builder));
    listing_print(options, &top_listing, list);
}

gboolean top_command(Client *client, const Options *options, char **args, GError **error)
{
    gboolean single = once || output_is_document(options);
    g_auto(Look) before = {0};

    (void)args;
    if (!look_at(client, options, &before, error))
        return FALSE;
    do {
        g_auto(Look) now = {0};

        g_usleep(SECOND_US);
        if (!look_at(client, options, &now, error))
            return FALSE;
        if (!single && isatty(fileno(options->out)))
            fputs(CLEAR, options->out);
        print_rates(options, &before, &now);
        fflush(options->out);
        look_clear(&before);
        before = now;
        now = (Look){0};
    } while (!single);
    return TRUE;
}
