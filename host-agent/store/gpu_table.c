/* SPDX-License-Identifier: MIT */
#include "host-agent/store/gpu_table.h"

gboolean gpu_table_add_finding(Db *db, const char *gpu, HealthKind kind, const char *reason,
                               gint64 since, GError **error)
{
    return db_run(db, error, "INSERT OR REPLACE INTO health VALUES (?, ?, ?, ?, ?)", "sssxb", gpu,
                  health_kind_name(kind), reason, since, health_kind_is_held(kind));
}

gboolean gpu_table_end_finding(Db *db, const char *gpu, HealthKind kind, GError **error)
{
    return db_run(db, error, "DELETE FROM health WHERE gpu = ? AND kind = ?", "ss", gpu,
                  health_kind_name(kind));
}

gboolean gpu_table_clear(Db *db, const char *gpu, const char *boot, guint64 aer_fatal, guint64 ecc,
                         GError **error)
{
    return db_run(db, error, "DELETE FROM health WHERE gpu = ?", "s", gpu) &&
           db_run(db, error, "INSERT OR REPLACE INTO health_cleared VALUES (?, ?, ?, ?)", "sstt",
                  gpu, boot, aer_fatal, ecc);
}

typedef struct {
    GpuFindingFunc finding;
    GpuClearedFunc cleared;
    void *data;
} Load;

static void load_finding(sqlite3_stmt *row, void *data)
{
    const Load *load = data;
    HealthKind kind;

    if (health_kind_parse(db_text(row, 1), &kind))
        load->finding(db_text(row, 0), kind, db_text(row, 2), load->data);
}

static void load_cleared(sqlite3_stmt *row, void *data)
{
    const Load *load = data;

    load->cleared(db_text(row, 0), (guint64)sqlite3_column_int64(row, 1),
                  (guint64)sqlite3_column_int64(row, 2), load->data);
}

gboolean gpu_table_load(Db *db, const char *boot, GpuFindingFunc finding, GpuClearedFunc cleared,
                        void *data, GError **error)
{
    Load load = {finding, cleared, data};

    return db_run(db, error, "DELETE FROM health WHERE NOT held", "") &&
           db_each(db, error, load_finding, &load, "SELECT gpu, kind, reason FROM health", "") &&
           db_each(db, error, load_cleared, &load,
                   "SELECT gpu, aer_fatal, ecc FROM health_cleared WHERE boot = ?", "s", boot);
}

gboolean gpu_table_evict(Db *db, const char *gpu, const char *tenant, gint64 now, gint64 until,
                         GError **error)
{
    return db_run(db, error, "DELETE FROM eviction WHERE until <= ?", "x", now) &&
           db_run(db, error, "INSERT OR REPLACE INTO eviction VALUES (?, ?, ?)", "ssx", gpu, tenant,
                  until);
}

static void mark(sqlite3_stmt *row, void *data)
{
    (void)row;
    *(gboolean *)data = TRUE;
}

gboolean gpu_table_is_evicted(Db *db, const char *gpu, const char *tenant, gint64 now)
{
    g_autoptr(GError) error = NULL;
    gboolean found = FALSE;

    if (!db_each(db, &error, mark, &found,
                 "SELECT 1 FROM eviction WHERE gpu = ? AND tenant = ? AND until > ?", "ssx", gpu,
                 tenant, now))
        g_warning("%s", error->message);
    return found;
}

static void read_time(sqlite3_stmt *row, void *data)
{
    *(gint64 *)data = sqlite3_column_int64(row, 0);
}

gint64 gpu_table_due(Db *db, const char *gpu)
{
    g_autoptr(GError) error = NULL;
    gint64 due = 0;

    if (!db_each(db, &error, read_time, &due, "SELECT due FROM schedule WHERE gpu = ?", "s", gpu))
        g_warning("%s", error->message);
    return due;
}

gboolean gpu_table_set_due(Db *db, const char *gpu, gint64 due, GError **error)
{
    return db_run(db, error, "INSERT OR REPLACE INTO schedule VALUES (?, ?)", "sx", gpu, due);
}
