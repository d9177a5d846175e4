/* SPDX-License-Identifier: MIT */
/*
 * The databases: vgpud's, of the desired state, and the meter's, of what is used. Each is one
 * SQLite file in WAL mode, which survives kill -9 and power loss. The actual state is in the
 * kernel, not here.
 *
 * Values are bound by a string of types, a letter for each "?" of the statement: s (const char *,
 * NULL allowed), t (guint64), x (gint64), u (guint), i (gint), b (gboolean), d (double).
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <glib.h>
#include <sqlite3.h>

#include "lib/host_root.h"

typedef struct Db Db;

/*
 * Opens /var/lib/vgpu/state.db, made if it does not exist, and migrates its tables to this version.
 * For a file of a newer version, or a damaged one, the error says what to do.
 */
Db *db_open(HostRoot *root, GError **error);

/*
 * The same for the meter's own, /var/lib/vgpu/meter.db: what is used. A new one takes over what an
 * earlier vgpud has counted in state.db, which is left as it is.
 */
Db *db_open_meter(HostRoot *root, GError **error);

/*
 * A second connection to the database of db_open_meter(), which only reads, and has committed rows
 * only: for a thread that may take seconds.
 */
Db *db_open_meter_reader(HostRoot *root, GError **error);

void db_free(Db *db);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Db, db_free)

/* Runs a statement that returns no rows. */
gboolean db_run(Db *db, GError **error, const char *sql, const char *types, ...);

/* Binds the values of a statement, with sqlite3_bind_*(). */
typedef int (*DbBindFunc)(sqlite3_stmt *statement, const void *data);

/* The same with values that @bind binds. */
gboolean db_run_bound(Db *db, GError **error, const char *sql, DbBindFunc bind, const void *data);

/*
 * The same as db_run() without waiting for the disk: it survives kill -9, but power loss only after
 * the next db_run(). Not between db_begin() and db_commit().
 */
gboolean db_run_later(Db *db, GError **error, const char *sql, const char *types, ...);

/* Called for each row; columns are read with sqlite3_column_*(). */
typedef void (*DbRowFunc)(sqlite3_stmt *row, void *data);

/* Runs a statement and calls @func for each of its rows. */
gboolean db_each(Db *db, GError **error, DbRowFunc func, void *data, const char *sql,
                 const char *types, ...);

/*
 * The first column of the first row, as a number; 0 if there is no row, or it cannot be read, which
 * is logged.
 */
gint64 db_number(Db *db, const char *sql, const char *types, ...);

/* The first column of all rows, as texts; NULL with @error. */
GStrv db_texts(Db *db, GError **error, const char *sql, const char *types, ...);

/* What @func adds for each row to the array that it is called with; NULL with @error. */
GPtrArray *db_list(Db *db, GError **error, DbRowFunc func, GDestroyNotify free_item,
                   const char *sql, const char *types, ...);

/* All statements in between are stored, or none. They do not nest. */
gboolean db_begin(Db *db, GError **error);
gboolean db_commit(Db *db, GError **error);
void db_rollback(Db *db);

/* A text column, never NULL. */
const char *db_text(sqlite3_stmt *row, int column);

/*
 * The tables of the database, as steps from each version to the next. A released step is never
 * changed: a new one is added.
 */

/*
 * NULL terminated; the database's user_version is the number of steps that were done, in the end
 * DATABASE_VERSION (lib/database.h).
 */
extern const char *const schema_steps[];

#endif
