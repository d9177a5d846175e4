/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/listing.h"

#include <libsmartcols.h>

#include "host-agent/vgpuctl/colour.h"
#include "host-agent/vgpuctl/text.h"

#define GAP "  "

typedef struct libscols_table SmartTable;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SmartTable, scols_unref_table)

static SmartTable *table_new(const Options *options, gboolean heads)
{
    SmartTable *table = scols_new_table();

    scols_table_set_stream(table, options->out);
    scols_table_set_column_separator(table, GAP);
    scols_table_enable_noheadings(table, !heads);
    scols_table_enable_colors(table, options->colour);
    return table;
}

static void add_column(SmartTable *table, const Options *options, const char *head, guint flags)
{
    gboolean cut = flags & COLUMN_LONG && options->format != FORMAT_WIDE;
    struct libscols_column *column =
        scols_table_new_column(table, head, 0, cut ? SCOLS_FL_TRUNC : 0);

    if (options->colour)
        scols_cell_set_color(scols_column_get_header(column), "bold");
}

/* What is shown of @text, which is taken. */
static char *shown(char *text)
{
    if (!text || !*text) {
        g_free(text);
        return g_strdup("-");
    }
    return g_strdelimit(text_printable(text), "\n", ' ');
}

/* Takes @text. */
static void set_cell(const Options *options, struct libscols_line *line, guint at, char *text,
                     guint flags)
{
    g_autofree char *cell = shown(text);

    scols_line_set_data(line, at, cell);
    if (options->colour && flags & COLUMN_STATE)
        scols_cell_set_color(scols_line_get_cell(line, at), colour_of_state(cell));
}

static gboolean is_shown(const Options *options, const Column *column)
{
    return !(column->flags & COLUMN_WIDE) || options->format == FORMAT_WIDE;
}

static void add_row(SmartTable *table, const Options *options, const Listing *listing,
                    GVariant *object)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);
    guint at = 0;

    for (guint i = 0; i < listing->columns_count; i++) {
        const Column *column = &listing->columns[i];

        if (is_shown(options, column))
            set_cell(options, line, at++, column->cell(object, column->key), column->flags);
    }
}

static void print_table(const Options *options, const Listing *listing, GVariant *objects)
{
    g_autoptr(SmartTable) table = table_new(options, !options->no_headers);

    for (guint i = 0; i < listing->columns_count; i++)
        if (is_shown(options, &listing->columns[i]))
            add_column(table, options, listing->columns[i].head, listing->columns[i].flags);
    for (gsize i = 0; i < g_variant_n_children(objects); i++) {
        g_autoptr(GVariant) object = g_variant_get_child_value(objects, i);

        add_row(table, options, listing, object);
    }
    scols_print_table(table);
}

static void print_name(const Options *options, const Listing *listing, GVariant *object)
{
    g_autoptr(GVariant) name = g_variant_lookup_value(object, listing->name, NULL);
    g_autofree char *text = NULL;

    if (!name)
        return;
    text = g_variant_is_of_type(name, G_VARIANT_TYPE_STRING) ? g_variant_dup_string(name, NULL)
                                                             : g_variant_print(name, FALSE);
    output_line(options, "%s", text);
}

void listing_print(const Options *options, const Listing *listing, GVariant *objects)
{
    gsize count = g_variant_n_children(objects);

    if (output_is_document(options)) {
        output_variant(options, objects);
    } else if (options->format == FORMAT_NAME) {
        for (gsize i = 0; i < count; i++) {
            g_autoptr(GVariant) object = g_variant_get_child_value(objects, i);

            print_name(options, listing, object);
        }
    } else if (count) {
        print_table(options, listing, objects);
    } else if (!options->no_headers) {
        output_line(options, "%s", listing->none);
    }
}

static void print_lines(const Options *options, const Listing *listing, GVariant *object)
{
    g_autoptr(SmartTable) table = table_new(options, FALSE);

    add_column(table, options, "NAME", 0);
    add_column(table, options, "VALUE", 0);
    for (guint i = 0; i < listing->lines_count; i++) {
        const Column *column = &listing->lines[i];
        struct libscols_line *line = scols_table_new_line(table, NULL);

        set_cell(options, line, 0, g_strconcat(column->head, ":", NULL), 0);
        set_cell(options, line, 1, column->cell(object, column->key), column->flags);
    }
    scols_print_table(table);
}

static void show_document(const Options *options, const GPtrArray *objects, gboolean list)
{
    GVariantBuilder builder;

    if (!list && objects->len == 1) {
        output_variant(options, g_ptr_array_index(objects, 0));
        return;
    }
    g_variant_builder_init(&builder, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < objects->len; i++)
        g_variant_builder_add_value(&builder, g_ptr_array_index(objects, i));
    output_variant(options, g_variant_builder_end(&builder));
}

void listing_show(const Options *options, const Listing *listing, const GPtrArray *objects,
                  gboolean list)
{
    if (output_is_document(options)) {
        show_document(options, objects, list);
        return;
    }
    for (guint i = 0; i < objects->len; i++) {
        GVariant *object = g_ptr_array_index(objects, i);

        if (options->format == FORMAT_NAME) {
            print_name(options, listing, object);
            continue;
        }
        if (i)
            fputc('\n', options->out);
        print_lines(options, listing, object);
    }
}

void listing_print_cells(const Options *options, const char *const *heads, guint columns,
                         const GPtrArray *cells)
{
    g_autoptr(SmartTable) table = table_new(options, !options->no_headers);
    struct libscols_line *line = NULL;

    for (guint i = 0; i < columns; i++)
        add_column(table, options, heads[i], 0);
    for (guint i = 0; i < cells->len; i++) {
        if (i % columns == 0)
            line = scols_table_new_line(table, NULL);
        set_cell(options, line, i % columns, g_strdup(g_ptr_array_index(cells, i)), 0);
    }
    scols_print_table(table);
}
