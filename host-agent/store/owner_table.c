/* SPDX-License-Identifier: MIT */
#include "host-agent/store/owner_table.h"

void owner_use_free(OwnerUse *use)
{
    g_free(use->uuid);
    g_free(use->owner);
    g_free(use);
}

static guint64 number_at(sqlite3_stmt *row, int column)
{
    return (guint64)sqlite3_column_int64(row, column);
}

static void read_use(sqlite3_stmt *row, void *data)
{
    OwnerUse *use = g_new0(OwnerUse, 1);

    use->uuid = g_strdup(db_text(row, 0));
    use->owner = g_strdup(db_text(row, 1));
    use->sum = (OwnerCounts){number_at(row, 2), number_at(row, 3), number_at(row, 4)};
    use->peak_vram = number_at(row, 5);
    use->last = (OwnerCounts){number_at(row, 6), number_at(row, 7), number_at(row, 8)};
    use->ended = sqlite3_column_int64(row, 9);
    use->energy_uj = sqlite3_column_int64(row, 10);
    g_ptr_array_add(data, use);
}

GPtrArray *owner_table_read(Db *db, GError **error)
{
    return db_list(db, error, read_use, (GDestroyNotify)owner_use_free,
                   "SELECT uuid, owner, gpu_ns, waited_ns, throttled_ns, peak_vram, last_gpu_ns,"
                   " last_waited_ns, last_throttled_ns, ended, energy_uj FROM owner_use",
                   "");
}

gboolean owner_table_put(Db *db, const OwnerUse *use, GError **error)
{
    return db_run(db, error,
                  "INSERT OR REPLACE INTO owner_use (uuid, owner, gpu_ns, waited_ns, throttled_ns,"
                  " peak_vram, last_gpu_ns, last_waited_ns, last_throttled_ns, ended, energy_uj)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  "sstttttttxx", use->uuid, use->owner, use->sum.gpu_ns, use->sum.waited_ns,
                  use->sum.throttled_ns, use->peak_vram, use->last.gpu_ns, use->last.waited_ns,
                  use->last.throttled_ns, use->ended, use->energy_uj);
}

gboolean owner_table_remove(Db *db, const char *uuid, GError **error)
{
    return db_run(db, error, "DELETE FROM owner_use WHERE uuid = ?", "s", uuid);
}

char *pool_table_get(Db *db, const char *gpu)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) pools = db_texts(db, &error, "SELECT pool FROM pool WHERE gpu = ?", "s", gpu);

    if (!pools)
        g_warning("%s", error->message);
    return pools ? g_strdup(pools[0]) : NULL;
}

GStrv pool_table_gpus(Db *db, GError **error)
{
    return db_texts(db, error, "SELECT gpu FROM pool ORDER BY gpu", "");
}

gboolean pool_table_set(Db *db, const char *gpu, const char *pool, GError **error)
{
    if (!pool)
        return db_run(db, error, "DELETE FROM pool WHERE gpu = ?", "s", gpu);
    return db_run(db, error, "INSERT OR REPLACE INTO pool VALUES (?, ?)", "ss", gpu, pool);
}
