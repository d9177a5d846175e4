/* SPDX-License-Identifier: MIT */
#include "host-agent/store/mode_journal.h"

static void run_or_log(Db *db, const char *sql, const char *key)
{
    g_autoptr(GError) error = NULL;

    if (!db_run(db, &error, sql, "s", key))
        g_warning("%s", error->message);
}

gboolean journal_add_stopped(Db *db, const char *gpu, const char *const *uuids, GError **error)
{
    for (guint i = 0; uuids[i]; i++)
        if (!db_run(db, error, "INSERT OR REPLACE INTO stopped VALUES (?, ?)", "ss", uuids[i], gpu))
            return FALSE;
    return TRUE;
}

static void add_text(sqlite3_stmt *row, void *data)
{
    g_strv_builder_add(data, db_text(row, 0));
}

GStrv journal_stopped(Db *db, const char *gpu)
{
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();
    g_autoptr(GError) error = NULL;

    if (!db_each(db, &error, add_text, uuids,
                 "SELECT uuid FROM stopped WHERE gpu = ? ORDER BY uuid", "s", gpu))
        g_warning("%s", error->message);
    return g_strv_builder_end(uuids);
}

void journal_forget_stopped(Db *db, const char *uuid)
{
    run_or_log(db, "DELETE FROM stopped WHERE uuid = ?", uuid);
}

static void set_true(sqlite3_stmt *row, void *data)
{
    (void)row;
    *(gboolean *)data = TRUE;
}

gboolean journal_drained(Db *db, const char *gpu)
{
    g_autoptr(GError) error = NULL;
    gboolean drained = FALSE;

    if (!db_each(db, &error, set_true, &drained, "SELECT 1 FROM drain WHERE gpu = ?", "s", gpu))
        g_warning("%s", error->message);
    return drained;
}

gboolean journal_set_drained(Db *db, const char *gpu, gboolean drained, GError **error)
{
    return db_run(db, error,
                  drained ? "INSERT OR REPLACE INTO drain VALUES (?)"
                          : "DELETE FROM drain WHERE gpu = ?",
                  "s", gpu);
}
