/* SPDX-License-Identifier: MIT */
/*
 * Tables for people: columns as wide as what is in them, two blanks between.
 */
#ifndef VGPUCTL_TABLE_H
#define VGPUCTL_TABLE_H

#include <glib.h>

typedef struct Table Table;

/* @columns: as many as each row will have cells. */
Table *table_new(guint columns);

/* With a first row, of @heads. */
Table *table_new_with_heads(const char *const *heads, guint columns);

void table_free(Table *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Table, table_free)

/* The next cell of the row that is being filled; takes @text. NULL or empty is shown as "-". */
void table_add(Table *table, char *text);

/* A row of a table of two columns: "NAME:" and its value, which is taken likewise. */
void table_add_pair(Table *table, const char *name, char *value);

/* Writes it to standard output. The last column is not padded. */
void table_print(const Table *table);

#endif
