/* SPDX-License-Identifier: MIT */
/* vgpuctl top: what the vGPUs do, second by second. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/listing.h"

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
 * Look - all vGPUs at a moment, microseconds
 * @by_uuid: the same by their UUIDs
 */
typedef struct {
    GVariant *vgpus;
    GHashTable *by_uuid;
    gint64 at;
} Look;

static void look_clear(Look *look)
{
    g_clear_pointer(&look->by_uuid, g_hash_table_unref);
    g_clear_pointer(&look->vgpus, g_variant_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Look, look_clear)

static void unref(void *vgpu)
{
    g_variant_unref(vgpu);
}

static gboolean look_at(const Client *client, Look *look, GError **error)
{
    look->at = g_get_monotonic_time();
    look->vgpus = client_get(client, "ListVgpus", NULL, NULL, error);
    if (!look->vgpus)
        return FALSE;
    look->by_uuid = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unref);
    for (gsize i = 0; i < g_variant_n_children(look->vgpus); i++) {
        GVariant *vgpu = g_variant_get_child_value(look->vgpus, i);

        g_hash_table_insert(look->by_uuid, dict_text(vgpu, "Uuid"), vgpu);
    }
    return TRUE;
}

/* How much the counter has grown in a second; NAN: nobody reports it, or the vGPU has just come. */
static double rate(GVariant *before, GVariant *now, const char *key, gint64 us)
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
    double requests;
    double doorbells;
} Rates;

static Rates rates_of(const Look *before, const Look *now, GVariant *vgpu)
{
    g_autofree char *uuid = dict_text(vgpu, "Uuid");
    GVariant *then = g_hash_table_lookup(before->by_uuid, uuid);
    gint64 us = MAX(now->at - before->at, 1);

    return (Rates){
        .gpu = rate(then, vgpu, "GpuTime", us) / NS * 100,
        .waited = rate(then, vgpu, "Waited", us) / NS,
        .requests = rate(then, vgpu, "Requests", us),
        .doorbells = rate(then, vgpu, "Doorbells", us),
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

static char *whole(GVariant *vgpu, const char *key)
{
    return number_text(vgpu, key, "%.0f");
}

static char *hundredths(GVariant *vgpu, const char *key)
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

static const Column columns[] = {
    {"VGPU", "Uuid", dict_text, 0},
    {"NAME", "Name", dict_text, COLUMN_WIDE},
    {"GPU", "Gpu", dict_text, 0},
    {"TENANT", "Tenant", dict_text, 0},
    {"CLASS", "Class", dict_text, 0},
    {"GPU %", "GpuPercent", whole, 0},
    {"WAIT S/S", "WaitedPerSecond", hundredths, 0},
    {"VRAM", "Vram", vram_text, 0},
    {"REQUESTS/S", "RequestsPerSecond", whole, 0},
    {"DOORBELLS/S", "DoorbellsPerSecond", whole, 0},
    {"ENGINE", "Engine", dict_text, COLUMN_STATE},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .name = "Uuid",
    .none = "This host has no vGPU.",
};

static void print(const Options *options, const Look *before, const Look *now)
{
    g_autoptr(GVariant) list = NULL;
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(now->vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(now->vgpus, i);

        g_variant_builder_add_value(&builder, with_rates(before, now, vgpu));
    }
    list = g_variant_ref_sink(g_variant_builder_end(&builder));
    listing_print(options, &listing, list);
}

gboolean top_command(Client *client, const Options *options, char **args, GError **error)
{
    gboolean single = once || output_is_document(options);
    g_auto(Look) before = {0};

    (void)args;
    if (!look_at(client, &before, error))
        return FALSE;
    do {
        g_auto(Look) now = {0};

        g_usleep(SECOND_US);
        if (!look_at(client, &now, error))
            return FALSE;
        if (!single && isatty(fileno(options->out)))
            fputs(CLEAR, options->out);
        print(options, &before, &now);
        fflush(options->out);
        look_clear(&before);
        before = now;
        now = (Look){0};
    } while (!single);
    return TRUE;
}
