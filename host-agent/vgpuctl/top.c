/* SPDX-License-Identifier: MIT */
/* vgpuctl top: what the vGPUs do, second by second. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/table.h"
#include "host-agent/vgpuctl/text.h"

#define SECOND_US G_USEC_PER_SEC
#define NS        1e9
/* Cursor to the upper left, and all after it blank. */
#define CLEAR "\033[H\033[J"

static gboolean once;

const GOptionEntry top_options[] = {
    {"once", 0, 0, G_OPTION_ARG_NONE, &once, "Print one table, and end", NULL},
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

static gboolean look_at(VgpuManager *manager, Look *look, GError **error)
{
    look->at = g_get_monotonic_time();
    if (!vgpu_manager_call_list_vgpus_sync(manager, &look->vgpus, NULL, error))
        return FALSE;
    look->by_uuid = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unref);
    for (gsize i = 0; i < g_variant_n_children(look->vgpus); i++) {
        GVariant *vgpu = g_variant_get_child_value(look->vgpus, i);

        g_hash_table_insert(look->by_uuid, dict_text(vgpu, "Uuid"), vgpu);
    }
    return TRUE;
}

/* How much the counter has grown in a second; NAN: nobody tells, or the vGPU has just come. */
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

static char *rate_text(double value, const char *format)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    return isnan(value) ? NULL : g_strdup(g_ascii_formatd(text, sizeof(text), format, value));
}

/* "1.2 GiB of 8.0 GiB" */
static char *vram_text(GVariant *vgpu)
{
    g_autofree char *promised = dict_bytes(vgpu, "Vram");
    g_autofree char *used = dict_bytes(vgpu, "VramUsed");

    return used ? g_strdup_printf("%s of %s", used, promised) : g_steal_pointer(&promised);
}

static void add_row(Table *table, GVariant *vgpu, const Rates *rates)
{
    table_add(table, dict_text(vgpu, "Uuid"));
    table_add(table, dict_text(vgpu, "Gpu"));
    table_add(table, dict_text(vgpu, "Tenant"));
    table_add(table, dict_text(vgpu, "Class"));
    table_add(table, rate_text(rates->gpu, "%.0f"));
    table_add(table, rate_text(rates->waited, "%.2f"));
    table_add(table, vram_text(vgpu));
    table_add(table, rate_text(rates->requests, "%.0f"));
    table_add(table, rate_text(rates->doorbells, "%.0f"));
    table_add(table, dict_text(vgpu, "Engine"));
}

static void print_table(const Look *before, const Look *now)
{
    static const char *const heads[] = {"VGPU",     "GPU",  "TENANT",     "CLASS",       "GPU %",
                                        "WAIT S/S", "VRAM", "REQUESTS/S", "DOORBELLS/S", "ENGINE"};
    g_autoptr(Table) table = table_new_with_heads(heads, G_N_ELEMENTS(heads));

    if (!g_variant_n_children(now->vgpus)) {
        puts("This host has no vGPU.");
        return;
    }
    for (gsize i = 0; i < g_variant_n_children(now->vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(now->vgpus, i);
        const Rates rates = rates_of(before, now, vgpu);

        add_row(table, vgpu, &rates);
    }
    table_print(table);
}

/* Members are left out where nobody tells. */
static void add_rate(JsonObject *object, const char *name, double value)
{
    if (!isnan(value))
        json_object_set_double_member(object, name, value);
}

static void print_json(const Look *before, const Look *now)
{
    JsonArray *array = json_array_new();

    for (gsize i = 0; i < g_variant_n_children(now->vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(now->vgpus, i);
        const Rates rates = rates_of(before, now, vgpu);
        JsonNode *node = json_gvariant_serialize(vgpu);
        JsonObject *object = json_node_get_object(node);

        add_rate(object, "GpuPercent", rates.gpu);
        add_rate(object, "WaitedPerSecond", rates.waited);
        add_rate(object, "RequestsPerSecond", rates.requests);
        add_rate(object, "DoorbellsPerSecond", rates.doorbells);
        json_array_add_element(array, node);
    }
    json_print(json_node_init_array(json_node_alloc(), array));
    json_array_unref(array);
}

gboolean top_command(Client *client, const Options *options, char **args, GError **error)
{
    VgpuManager *manager = client->manager;
    gboolean single = once || options->json;
    g_auto(Look) before = {0};

    (void)args;
    if (!look_at(manager, &before, error))
        return FALSE;
    do {
        g_auto(Look) now = {0};

        g_usleep(SECOND_US);
        if (!look_at(manager, &now, error))
            return FALSE;
        if (options->json) {
            print_json(&before, &now);
        } else {
            if (!single && isatty(STDOUT_FILENO))
                fputs(CLEAR, stdout);
            print_table(&before, &now);
        }
        fflush(stdout);
        look_clear(&before);
        before = now;
        now = (Look){0};
    } while (!single);
    return TRUE;
}
