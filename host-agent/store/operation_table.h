/* SPDX-License-Identifier: MIT */
/*
 * The journal of operations: what is being done, and how far it has come. A row is there from
 * before the first step until after the last one, so a row at the start of vgpud is an operation
 * that was cut short.
 */
#ifndef STORE_OPERATION_TABLE_H
#define STORE_OPERATION_TABLE_H

#include "host-agent/store/db.h"

/**
 * OperationRow
 * @id: set by operation_table_begin()
 * @kind: name of its kind
 * @objects: UUIDs of slices and addresses of GPUs that it is about
 * @data: what its steps need besides, as its kind wrote it; "": nothing
 * @caller: who asked for it, for people to read; "": vgpud itself
 * @begun: seconds since 1970
 * @step, @item: the step that was begun last; "": none
 * @undoing: it goes back
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
 * A step of the row is about to be done, or undone. This survives kill -9, and power loss only
 * together with what is written next: after power loss no vGPU is left to be undone.
 */
gboolean operation_table_mark(Db *db, const OperationRow *row, GError **error);

/* As operation_table_begin(). A row that is not there is no error. */
gboolean operation_table_end(Db *db, guint64 id, GError **error);

#endif
