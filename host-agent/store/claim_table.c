/* SPDX-License-Identifier: MIT */
#include "host-agent/store/claim_table.h"

void claim_free(Claim *claim)
{
    g_free(claim->uuid);
    g_free(claim->container);
    g_free(claim->cgroup);
    g_free(claim);
}

static void free_claim(void *claim)
{
    claim_free(claim);
}

static void read_claim(sqlite3_stmt *row, void *data)
{
    Claim *claim = g_new0(Claim, 1);

    claim->uuid = g_strdup(db_text(row, 0));
    claim->container = g_strdup(db_text(row, 1));
    claim->pid = (guint)sqlite3_column_int64(row, 2);
    claim->started = (guint64)sqlite3_column_int64(row, 3);
    claim->user = sqlite3_column_int64(row, 4);
    claim->cgroup = g_strdup(db_text(row, 5));
    g_ptr_array_add(data, claim);
}

GPtrArray *claim_table_read(Db *db, const char *boot, GError **error)
{
    g_autoptr(GPtrArray) claims = g_ptr_array_new_with_free_func(free_claim);

    if (!db_run(db, error, "DELETE FROM claim WHERE boot <> ?", "s", boot) ||
        !db_each(db, error, read_claim, claims,
                 "SELECT uuid, container, pid, started, user, cgroup FROM claim", ""))
        return NULL;
    return g_steal_pointer(&claims);
}

gboolean claim_table_put(Db *db, const char *boot, const Claim *claim, GError **error)
{
    return db_run(db, error,
                  "INSERT OR REPLACE INTO claim (uuid, container, boot, pid, started, user,"
                  " cgroup) VALUES (?, ?, ?, ?, ?, ?, ?)",
                  "sssutxs", claim->uuid, claim->container, boot, claim->pid, claim->started,
                  claim->user, claim->cgroup);
}

gboolean claim_table_remove(Db *db, const char *uuid, GError **error)
{
    return db_run(db, error, "DELETE FROM claim WHERE uuid = ?", "s", uuid);
}
