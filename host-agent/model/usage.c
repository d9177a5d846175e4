/* SPDX-License-Identifier: MIT */
#include "host-agent/model/usage.h"

#include <stdio.h>

#include "lib/conf.h"

/* Microseconds of CPU time in a second that count as idle: timers, housekeeping. */
#define IDLE_CPU_US 10000

/**
 * Last - a vGPU at its last sample: its counters and, in @row, what was promised of it
 * @vram_used: bytes, if @vram_known
 */
typedef struct {
    UsageRow row;
    guint64 requests;
    guint64 doorbells;
    guint64 gpu_ns;
    guint64 alone_ns;
    guint64 cpu_us;
    guint64 vram_peak;
    guint64 vram_used;
    gboolean vram_known;
    gboolean sampled;
} Last;

struct Usage {
    GHashTable *last; /* UUID, which is Last's own, to Last */
    GHashTable *rows; /* "HOUR UUID TENANT" to UsageRow */
};

static void row_clear(UsageRow *row)
{
    g_free(row->uuid);
    g_free(row->tenant);
    g_free(row->gpu);
    g_free(row->type);
}

static void row_free(void *data)
{
    row_clear(data);
    g_free(data);
}

static void last_free(void *data)
{
    row_clear(&((Last *)data)->row);
    g_free(data);
}

Usage *usage_new(void)
{
    Usage *usage = g_new0(Usage, 1);

    usage->last = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, last_free);
    usage->rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, row_free);
    return usage;
}

void usage_free(Usage *usage)
{
    g_hash_table_unref(usage->last);
    g_hash_table_unref(usage->rows);
    g_free(usage);
}

static char *key_of(const UsageRow *promised, gint64 hour)
{
    return g_strdup_printf("%" G_GINT64_FORMAT " %s %s", hour, promised->uuid, promised->tenant);
}

static UsageRow *row_of(Usage *usage, const UsageRow *promised, gint64 hour)
{
    char *key = key_of(promised, hour);
    UsageRow *row = g_hash_table_lookup(usage->rows, key);

    if (row) {
        g_free(key);
        return row;
    }
    row = g_new0(UsageRow, 1);
    row->hour = hour;
    row->uuid = g_strdup(promised->uuid);
    row->tenant = g_strdup(promised->tenant);
    row->gpu = g_strdup(promised->gpu);
    row->type = g_strdup(promised->type);
    g_hash_table_insert(usage->rows, key, row);
    return row;
}

/* In the hour in which the @seconds until @now began. */
static UsageRow *add_promised(Usage *usage, const UsageRow *promised, gint64 now, guint seconds)
{
    UsageRow *row = row_of(usage, promised, (now - seconds) / USAGE_HOUR * USAGE_HOUR);

    row->seconds += seconds;
    row->vram = promised->vram;
    row->compute = promised->compute;
    return row;
}

/* A counter that has decreased has restarted: the vGPU was made again, or its engine was. */
static guint64 moved(guint64 now, guint64 *last)
{
    guint64 by = now < *last ? now : now - *last;

    *last = now;
    return by;
}

/* The most that was in use since the last sample, as far as that is known. */
static guint64 peak_since(const UsageSample *sample, guint64 *last)
{
    gboolean is_new = sample->vram_peak > *last;

    *last = sample->vram_peak;
    return is_new ? sample->vram_peak : sample->vram_used;
}

static Last *last_new(Usage *usage, const char *uuid)
{
    Last *last = g_new0(Last, 1);

    last->row.uuid = g_strdup(uuid);
    g_hash_table_insert(usage->last, last->row.uuid, last);
    return last;
}

static void note_promise(UsageRow *row, const UsageSample *sample)
{
    g_set_str(&row->tenant, sample->tenant);
    g_set_str(&row->gpu, sample->gpu);
    g_set_str(&row->type, sample->type);
    row->vram = sample->vram;
    row->compute = sample->compute;
}

/* Adds what the counters have moved by to the last @seconds. */
static void add_use(Last *last, UsageRow *row, const UsageSample *sample, guint seconds)
{
    guint64 requests = moved(sample->requests, &last->requests);
    guint64 doorbells = moved(sample->doorbells, &last->doorbells);
    guint64 gpu_ns =
        moved(sample->gpu_ns, &last->gpu_ns) + moved(sample->alone_ns, &last->alone_ns);
    guint64 cpu_us = moved(sample->cpu_us, &last->cpu_us);
    guint64 peak = peak_since(sample, &last->vram_peak);

    last->vram_used = sample->vram_used;
    last->vram_known = sample->vram_known;
    if (!row)
        return;
    if (sample->vram_known)
        memory_use_add(&row->memory, peak, seconds);
    if (requests || doorbells || gpu_ns || cpu_us > (guint64)seconds * IDLE_CPU_US)
        row->busy_seconds += seconds;
    row->requests += requests;
    row->gpu_ns += gpu_ns;
    row->peak_vram = MAX(row->peak_vram, peak);
}

void usage_add(Usage *usage, const UsageSample *sample, gint64 now, guint seconds)
{
    Last *last = g_hash_table_lookup(usage->last, sample->uuid);
    gboolean first = !last;
    UsageRow *row = NULL;

    if (first)
        last = last_new(usage, sample->uuid);
    last->sampled = TRUE;
    note_promise(&last->row, sample);
    if (!first && seconds)
        row = add_promised(usage, &last->row, now, seconds);
    if (sample->unknown)
        last->vram_known = FALSE;
    else
        add_use(last, row, sample, seconds);
}

static void add_idle(Usage *usage, const Last *last, gint64 now, guint seconds)
{
    UsageRow *row = add_promised(usage, &last->row, now, seconds);

    if (last->vram_known)
        memory_use_add(&row->memory, last->vram_used, seconds);
}

void usage_add_idle(Usage *usage, gint64 now, guint seconds)
{
    GHashTableIter iter;
    void *last;

    /* A row is of one hour. */
    while (seconds) {
        gint64 hour_end = ((now - seconds) / USAGE_HOUR + 1) * USAGE_HOUR;
        guint part = (guint)MIN(hour_end - (now - seconds), seconds);

        g_hash_table_iter_init(&iter, usage->last);
        while (g_hash_table_iter_next(&iter, NULL, &last))
            add_idle(usage, last, now - seconds + part, part);
        seconds -= part;
    }
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

void usage_give_back(Usage *usage, GPtrArray *rows)
{
    while (rows->len) {
        UsageRow *row = g_ptr_array_steal_index_fast(rows, rows->len - 1);

        g_hash_table_insert(usage->rows, key_of(row, row->hour), row);
    }
}

/* Before this time a vGPU is not called idle. */
#define LONG_ENOUGH_S (24 * (guint64)3600)
/* Below this, it should be given back. */
#define IDLE_SHARE 0.05
/* A smaller type must exceed the peak by this factor. */
#define ROOM_FACTOR 1.1
/* It must save this part of the memory: a type's size may differ by a byte from a round number. */
#define SAVING 0.25

void report_row_free(void *data)
{
    ReportRow *row = data;

    g_free(row->uuid);
    g_free(row->tenant);
    g_free(row->gpu);
    g_free(row->type);
    g_free(row);
}

/* The smallest type that would have been enough; NULL: none is much smaller than the row's. */
static const ReportSize *find_smaller(const ReportRow *row, const GArray *sizes)
{
    double enough = (double)row->peak_vram * ROOM_FACTOR;
    const ReportSize *best = NULL;

    for (guint i = 0; row->peak_vram && i < sizes->len; i++) {
        const ReportSize *size = &g_array_index(sizes, ReportSize, i);

        if ((double)size->vram >= enough &&
            (double)size->vram <= (double)row->vram * (1 - SAVING) &&
            g_strcmp0(size->name, row->type) != 0 && (!best || size->vram < best->vram))
            best = size;
    }
    return best;
}

char *report_advice(const ReportRow *row, const GArray *sizes)
{
    double busy = row->seconds ? (double)row->busy_seconds / (double)row->seconds : 0;
    const ReportSize *size = find_smaller(row, sizes);
    g_autofree char *peak = NULL;
    g_autofree char *whole = NULL;

    if (row->seconds >= LONG_ENOUGH_S && busy < IDLE_SHARE)
        return g_strdup_printf("idle for %.0f %% of its time: give it back", (1 - busy) * 100);
    if (row->seconds < LONG_ENOUGH_S || !size)
        return g_strdup("");
    peak = size_format(row->peak_vram);
    whole = size_format(row->vram);
    return g_strdup_printf("peak %s of %s: %s would have been enough", peak, whole, size->name);
}

gboolean report_month(const char *month, gint64 now, gint64 *begin, gint64 *end)
{
    g_autoptr(GDateTime) at = g_date_time_new_from_unix_utc(now);
    int year = g_date_time_get_year(at);
    int number = g_date_time_get_month(at);
    int months = 1;
    g_autoptr(GDateTime) first = NULL;
    g_autoptr(GDateTime) next = NULL;

    if (g_regex_match_simple("^[0-9]{4}$", month, G_REGEX_DOLLAR_ENDONLY, 0)) {
        sscanf(month, "%4d", &year);
        number = 1;
        months = 12;
    } else if (month[0]) {
        if (!g_regex_match_simple("^[0-9]{4}-[0-9]{2}$", month, G_REGEX_DOLLAR_ENDONLY, 0))
            return FALSE;
        sscanf(month, "%4d-%2d", &year, &number);
    }
    first = g_date_time_new_utc(year, number, 1, 0, 0, 0);
    next = first ? g_date_time_add_months(first, months) : NULL;
    if (!next)
        return FALSE;
    *begin = g_date_time_to_unix(first);
    *end = g_date_time_to_unix(next);
    return TRUE;
}
