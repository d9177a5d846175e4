/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <stdio.h>

#define GAP 2

struct Table {
    guint columns;
    GPtrArray *cells;
};

Table *table_new(guint columns)
{
    Table *table = g_new0(Table, 1);

    table->columns = columns;
    table->cells = g_ptr_array_new_with_free_func(g_free);
    return table;
}

void table_free(Table *table)
{
    g_ptr_array_unref(table->cells);
    g_free(table);
}

void table_add(Table *table, char *text)
{
    if (!text || !*text) {
        g_free(text);
        text = g_strdup("-");
    }
    g_ptr_array_add(table->cells, text);
}

static int width_of(const Table *table, guint column)
{
    glong width = 0;

    for (guint i = column; i < table->cells->len; i += table->columns)
        width = MAX(width, g_utf8_strlen(g_ptr_array_index(table->cells, i), -1));
    return (int)width;
}

void table_print(const Table *table)
{
    for (guint i = 0; i < table->cells->len; i++) {
        const char *cell = g_ptr_array_index(table->cells, i);
        guint column = i % table->columns;

        if (column + 1 == table->columns)
            printf("%s\n", cell);
        else
            printf("%s%*s", cell, width_of(table, column) - (int)g_utf8_strlen(cell, -1) + GAP, "");
    }
}
