/* SPDX-License-Identifier: MIT */
#include "host-agent/store/operation_table.h"

/* No object's name has a blank. */
#define SEPARATOR " "

void operation_row_free(OperationRow *row)
{
    g_free(row->kind);
    g_strfreev(row->objects);
    g_free(row->data);
    g_free(row->caller);
    g_free(row->step);
    g_free(row);
}

static void free_row(void *row)
{
    operation_row_free(row);
}

static void read_row(sqlite3_stmt *found, void *data)
{
    OperationRow *row = g_new0(OperationRow, 1);

    row->id = (guint64)sqlite3_column_int64(found, 0);
    row->kind = g_strdup(db_text(found, 1));
    row->objects = g_strsplit(db_text(found, 2), SEPARATOR, -1);
    row->data = g_strdup(db_text(found, 3));
    row->caller = g_strdup(db_text(found, 4));
    row->begun = sqlite3_column_int64(found, 5);
    row->step = g_strdup(db_text(found, 6));
    row->item = (guint)sqlite3_column_int64(found, 7);
    row->undoing = sqlite3_column_int(found, 8);
    g_ptr_array_add(data, row);
}

GPtrArray *operation_table_read(Db *db, GError **error)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(free_row);

    if (!db_each(db, error, read_row, rows,
                 "SELECT id, kind, objects, data, caller, begun, step, item, undoing"
                 " FROM operation ORDER BY id",
                 ""))
        return NULL;
    return g_steal_pointer(&rows);
}

static void read_id(sqlite3_stmt *found, void *id)
{
    *(guint64 *)id = (guint64)sqlite3_column_int64(found, 0);
}

gboolean operation_table_begin(Db *db, OperationRow *row, GError **error)
{
    g_autofree char *objects = g_strjoinv(SEPARATOR, row->objects);

    return db_each(db, error, read_id, &row->id,
                   "INSERT INTO operation (kind, objects, data, caller, begun, step, item, undoing)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                   "ssssxsub", row->kind, objects, row->data, row->caller, row->begun, row->step,
                   row->item, row->undoing);
}

gboolean operation_table_mark(Db *db, const OperationRow *row, GError **error)
{
    return db_run_later(db, error,
                        "UPDATE operation SET step = ?, item = ?, undoing = ? WHERE id = ?", "subt",
                        row->step, row->item, row->undoing, row->id);
}

gboolean operation_table_end(Db *db, guint64 id, GError **error)
{
    return db_run(db, error, "DELETE FROM operation WHERE id = ?", "t", id);
}
