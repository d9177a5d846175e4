/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/table.h"

#include <stdio.h>

#include "host-agent/vgpuctl/text.h"

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

Table *table_new_with_heads(const char *const *heads, guint columns)
{
    Table *table = table_new(columns);

    for (guint i = 0; i < columns; i++)
        table_add(table, g_strdup(heads[i]));
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
    g_ptr_array_add(table->cells, g_strdelimit(text_printable(text), "\n", ' '));
}

/* Of each column, in characters. To be freed. */
static int *widths_of(const Table *table)
{
    int *widths = g_new0(int, table->columns);

    for (guint i = 0; i < table->cells->len; i++) {
        int *width = &widths[i % table->columns];

        *width = MAX(*width, (int)g_utf8_strlen(g_ptr_array_index(table->cells, i), -1));
    }
    return widths;
}

void table_add_pair(Table *table, const char *name, char *value)
{
    table_add(table, g_strconcat(name, ":", NULL));
    table_add(table, value);
}

void table_print(const Table *table)
{
    g_autofree int *widths = widths_of(table);

    for (guint i = 0; i < table->cells->len; i++) {
        const char *cell = g_ptr_array_index(table->cells, i);
        guint column = i % table->columns;

        if (column + 1 == table->columns)
            printf("%s\n", cell);
        else
            printf("%s%*s", cell, widths[column] - (int)g_utf8_strlen(cell, -1) + GAP, "");
    }
}
