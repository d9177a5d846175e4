/* SPDX-License-Identifier: MIT */
/*
 * The agent's database: what is wanted, and what was used. One SQLite file in WAL mode, which
 * survives kill -9 and power loss; what is true now is in the kernel, not here.
 *
 * Values are bound by a string of types, a letter for each "?" of the statement: s (const char *,
 * NULL allowed), t (guint64), x (gint64), u (guint), i (gint), b (gboolean), d (double).
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <glib.h>
#include <sqlite3.h>

typedef struct Db Db;

/*
 * Opens /var/lib/vgpu/state.db below @root, made where there is none, and brings its tables up to this
 * version. A file of a newer version, or a damaged one, is an error that says what to do.
 */
Db *db_open(const char *root, GError **error);

void db_free(Db *db);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Db, db_free)

/* Does a statement that has no rows. */
gboolean db_run(Db *db, GError **error, const char *sql, const char *types, ...);

/*
 * The same without waiting for the disk: kill -9 loses nothing, power loss may, up to what is
 * written next by db_run(). Not between db_begin() and db_commit().
 */
gboolean db_run_later(Db *db, GError **error, const char *sql, const char *types, ...);

/* Called for each row; columns are read with sqlite3_column_*(). */
typedef void (*DbRowFunc)(sqlite3_stmt *row, void *data);

/* Does a statement and calls @func for each of its rows. */
gboolean db_each(Db *db, GError **error, DbRowFunc func, void *data, const char *sql,
                 const char *types, ...);

/* All statements in between are stored, or none. They don't nest. */
gboolean db_begin(Db *db, GError **error);
gboolean db_commit(Db *db, GError **error);
void db_rollback(Db *db);

/* A text column, never NULL. */
const char *db_text(sqlite3_stmt *row, int column);

#endif
