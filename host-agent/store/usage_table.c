/* SPDX-License-Identifier: MIT */
#include "host-agent/store/usage_table.h"

#include "host-agent/model/usage.h"

#define KEPT (366 * (gint64)24 * USAGE_HOUR)

static gboolean add_row(Db *db, const UsageRow *row, GError **error)
{
    return db_run(db, error,
                  "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT (hour, uuid, tenant) DO UPDATE SET "
                  "gpu = excluded.gpu, type = excluded.type, seconds = seconds + excluded.seconds, "
                  "busy_seconds = busy_seconds + excluded.busy_seconds, vram = excluded.vram, "
                  "compute = excluded.compute, peak_vram = max(peak_vram, excluded.peak_vram), "
                  "gpu_ns = gpu_ns + excluded.gpu_ns, requests = requests + excluded.requests",
                  "xsssstttuttt", row->hour, row->uuid, row->tenant, row->gpu, row->type,
                  row->seconds, row->busy_seconds, row->vram, row->compute, row->peak_vram,
                  row->gpu_ns, row->requests);
}

gboolean usage_table_add(Db *db, const GPtrArray *rows, GError **error)
{
    gboolean good = db_begin(db, error);

    if (!good)
        return FALSE;
    for (guint i = 0; good && i < rows->len; i++)
        good = add_row(db, g_ptr_array_index(rows, i), error);
    if (good && db_commit(db, error))
        return TRUE;
    db_rollback(db);
    return FALSE;
}

gboolean usage_table_prune(Db *db, gint64 now, GError **error)
{
    return db_run(db, error, "DELETE FROM usage WHERE hour < ?", "x", now - KEPT);
}

static void take_row(sqlite3_stmt *column, void *data)
{
    ReportRow *row = g_new0(ReportRow, 1);

    row->uuid = g_strdup(db_text(column, 0));
    row->tenant = g_strdup(db_text(column, 1));
    row->gpu = g_strdup(db_text(column, 2));
    row->type = g_strdup(db_text(column, 3));
    row->seconds = (guint64)sqlite3_column_int64(column, 4);
    row->busy_seconds = (guint64)sqlite3_column_int64(column, 5);
    row->vram_seconds = sqlite3_column_double(column, 6);
    row->compute_seconds = sqlite3_column_double(column, 7);
    row->vram = (guint64)sqlite3_column_int64(column, 8);
    row->peak_vram = (guint64)sqlite3_column_int64(column, 9);
    row->gpu_ns = (guint64)sqlite3_column_int64(column, 10);
    g_ptr_array_add(data, row);
}

GPtrArray *usage_table_sum(Db *db, const char *tenant, gint64 begin, gint64 end, GError **error)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(report_row_free);

    if (!db_each(db, error, take_row, rows,
                 "SELECT uuid, tenant, gpu, type, sum(seconds), sum(busy_seconds), "
                 "total(CAST(seconds AS REAL) * vram), total(CAST(seconds AS REAL) * compute), "
                 "max(vram), max(peak_vram), sum(gpu_ns) FROM usage "
                 "WHERE hour >= ? AND hour < ? AND (? = '' OR tenant = ?) "
                 "GROUP BY uuid, tenant, gpu, type ORDER BY tenant, gpu, uuid",
                 "xxss", begin, end, tenant, tenant))
        return NULL;
    return g_steal_pointer(&rows);
}
