/* SPDX-License-Identifier: MIT */
#include "host-agent/model/usage.h"

/* Microseconds of CPU time in a second that are taken for idle: timers, housekeeping. */
#define IDLE_CPU_US 10000

/* Where the counters of a vGPU stood. */
typedef struct {
    guint64 requests;
    guint64 doorbells;
    guint64 gpu_ns;
    guint64 cpu_us;
    gboolean sampled;
} Last;

struct Usage {
    GHashTable *last; /* UUID to Last */
    GHashTable *rows; /* "HOUR UUID TENANT" to UsageRow */
};

static void row_free(void *data)
{
    UsageRow *row = data;

    g_free(row->uuid);
    g_free(row->tenant);
    g_free(row->gpu);
    g_free(row->type);
    g_free(row);
}

Usage *usage_new(void)
{
    Usage *usage = g_new0(Usage, 1);

    usage->last = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    usage->rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, row_free);
    return usage;
}

void usage_free(Usage *usage)
{
    g_hash_table_unref(usage->last);
    g_hash_table_unref(usage->rows);
    g_free(usage);
}

static UsageRow *row_of(Usage *usage, const UsageSample *sample, gint64 hour)
{
    char *key = g_strdup_printf("%" G_GINT64_FORMAT " %s %s", hour, sample->uuid, sample->tenant);
    UsageRow *row = g_hash_table_lookup(usage->rows, key);

    if (row) {
        g_free(key);
        return row;
    }
    row = g_new0(UsageRow, 1);
    row->hour = hour;
    row->uuid = g_strdup(sample->uuid);
    row->tenant = g_strdup(sample->tenant);
    row->gpu = g_strdup(sample->gpu);
    row->type = g_strdup(sample->type);
    g_hash_table_insert(usage->rows, key, row);
    return row;
}

/* A counter that has fallen has begun anew: the vGPU was made again, its engine started again. */
static guint64 moved(guint64 now, guint64 *last)
{
    guint64 by = now < *last ? now : now - *last;

    *last = now;
    return by;
}

void usage_add(Usage *usage, const UsageSample *sample, gint64 now, guint seconds)
{
    Last *last = g_hash_table_lookup(usage->last, sample->uuid);
    gboolean first = !last;
    guint64 requests, doorbells, gpu_ns, cpu_us;
    UsageRow *row;

    if (first) {
        last = g_new0(Last, 1);
        g_hash_table_insert(usage->last, g_strdup(sample->uuid), last);
    }
    last->sampled = TRUE;
    requests = moved(sample->requests, &last->requests);
    doorbells = moved(sample->doorbells, &last->doorbells);
    gpu_ns = moved(sample->gpu_ns, &last->gpu_ns);
    cpu_us = moved(sample->cpu_us, &last->cpu_us);
    if (first || !seconds)
        return;
    row = row_of(usage, sample, (now - seconds) / USAGE_HOUR * USAGE_HOUR);
    row->seconds += seconds;
    if (requests || doorbells || gpu_ns || cpu_us > (guint64)seconds * IDLE_CPU_US)
        row->busy_seconds += seconds;
    row->requests += requests;
    row->gpu_ns += gpu_ns;
    row->vram = sample->vram;
    row->compute = sample->compute;
    row->peak_vram = MAX(row->peak_vram, sample->vram_used);
}

static gboolean was_not_sampled(void *uuid, void *value, void *data)
{
    Last *last = value;
    gboolean gone = !last->sampled;

    (void)uuid;
    (void)data;
    last->sampled = FALSE;
    return gone;
}

void usage_forget_gone(Usage *usage)
{
    g_hash_table_foreach_remove(usage->last, was_not_sampled, NULL);
}

GPtrArray *usage_take(Usage *usage)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(row_free);
    GHashTableIter iter;
    void *key;
    void *row;

    g_hash_table_iter_init(&iter, usage->rows);
    while (g_hash_table_iter_next(&iter, &key, &row)) {
        g_hash_table_iter_steal(&iter);
        g_free(key);
        g_ptr_array_add(rows, row);
    }
    return rows;
}
