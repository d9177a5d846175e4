/* SPDX-License-Identifier: MIT */
/*
 * The journal of operations and of their progress. A row exists from before the first step until
 * after the last one, so a row at the start of vgpud is an interrupted operation.
 */
#ifndef STORE_OPERATION_TABLE_H
#define STORE_OPERATION_TABLE_H

#include "host-agent/store/db.h"

/**
 * OperationRow
 * @id: set by operation_table_begin()
 * @kind: name of its kind
 * @objects: UUIDs of its slices and addresses of its GPUs
 * @data: further input of its steps, in its kind's format; "": none
 * @caller: who asked for it, for people to read; "": vgpud itself
 * @begun: seconds since 1970
 * @step, @item: the step that was begun last; "": none
 * @undoing: it is being rolled back
 */
typedef struct {
    guint64 id;
    char *kind;
    GStrv objects;
    char *data;
    char *caller;
    gint64 begun;
    char *step;
    guint item;
    gboolean undoing;
} OperationRow;

void operation_row_free(OperationRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OperationRow, operation_row_free)

/* Of OperationRow, the oldest first. NULL with @error. */
GPtrArray *operation_table_read(Db *db, GError **error);

/* Survives kill -9 and power loss when it returns. Sets @row's id. */
gboolean operation_table_begin(Db *db, OperationRow *row, GError **error);

/*
 * A step of the row is about to be run, or undone. This survives kill -9, and power loss only
 * together with the next write: after power loss no vGPU is left to be undone.
 */
gboolean operation_table_mark(Db *db, const OperationRow *row, GError **error);

/* As operation_table_begin(). A missing row is no error. */
gboolean operation_table_end(Db *db, guint64 id, GError **error);

#endif
