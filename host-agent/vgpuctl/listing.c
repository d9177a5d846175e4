/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/listing.h"

#include <fnmatch.h>
#include <libsmartcols.h>
#include <string.h>
#include <unistd.h>

#include "host-agent/model/slice_keys.h"
#include "host-agent/vgpuctl/command.h"

/*
 * The colours of states: green for what works, yellow for what waits, red for what needs an
 * operator.
 */

static const struct {
    const char *begin;
    const char *colour;
} colour_states[] = {
    {"running", "green"}, {"ready", "green"},    {"shared", "green"},     {"yes", "green"},
    {"ok", "green"},      {"declared", "green"}, {"problem", "red"},      {"failed", "red"},
    {"lost", "red"},      {"no:", "red"},        {"stopped", "darkgray"}, {"none", "darkgray"},
    {"warning", "brown"}, {"starting", "brown"}, {"by command", "brown"},
};

/* As libsmartcols names it; NULL: the terminal's own. */
static const char *colour_of_state(const char *state)
{
    if (strstr(state, "draining") || strstr(state, "switching"))
        return "brown";
    for (guint i = 0; i < G_N_ELEMENTS(colour_states); i++)
        if (g_str_has_prefix(state, colour_states[i].begin))
            return colour_states[i].colour;
    return NULL;
}

#define GAP "  "

typedef struct libscols_table SmartTable;

static SmartTable *table_new(const Options *options, gboolean heads)
{
    SmartTable *table = scols_new_table();

    scols_table_set_stream(table, options->out);
    scols_table_set_column_separator(table, GAP);
    scols_table_enable_noheadings(table, !heads);
    scols_table_enable_colors(table, options->colour);
    return table;
}

/* Makes each of @widths, of the columns, at least its cell's. */
static void widen_columns(gsize *widths, gsize columns, struct libscols_line *line)
{
    for (gsize i = 0; i < columns; i++) {
        const char *data = scols_cell_get_data(scols_line_get_cell(line, i));

        widths[i] = MAX(widths[i], data ? strlen(data) : 0);
    }
}

/* A line's, in characters, or more. */
static gsize table_width(SmartTable *table)
{
    gsize columns = scols_table_get_ncols(table), sum = 0;
    g_autofree gsize *widths = g_new0(gsize, columns);
    struct libscols_iter *lines = scols_new_iter(SCOLS_ITER_FORWARD);
    struct libscols_line *line;

    for (gsize i = 0; i < columns; i++)
        widths[i] = strlen(scols_column_get_name(scols_table_get_column(table, i)));
    while (scols_table_next_line(table, lines, &line) == 0)
        widen_columns(widths, columns, line);
    scols_free_iter(lines);
    for (gsize i = 0; i < columns; i++)
        sum += widths[i] + strlen(GAP);
    return sum;
}

/*
 * libsmartcols clears a line's buffer for each cell, and without a terminal that has 8 KiB: half of
 * the time of a long list. So it gets a terminal that is as wide as the table.
 */
static void print_and_free(SmartTable *table, const Options *options)
{
    if (!isatty(fileno(options->out))) {
        scols_table_set_termforce(table, SCOLS_TERMFORCE_ALWAYS);
        scols_table_set_termwidth(table, table_width(table));
    }
    scols_print_table(table);
    scols_unref_table(table);
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
static char *shown_text(char *text)
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
    g_autofree char *cell = shown_text(text);

    scols_line_set_data(line, at, cell);
    if (options->colour && flags & COLUMN_STATE)
        scols_cell_set_color(scols_line_get_cell(line, at), colour_of_state(cell));
}

static gboolean is_shown(const Options *options, const Column *column)
{
    return !(column->flags & COLUMN_WIDE) || options->format == FORMAT_WIDE;
}

static CellFunc cell_of_attribute(const SliceKey *key)
{
    switch (key->type) {
    case SLICE_KEY_FLAG:
        return dict_flag;
    case SLICE_KEY_BYTES:
        return dict_bytes;
    case SLICE_KEY_NUMBER:
    case SLICE_KEY_LEVEL:
    case SLICE_KEY_TIME:
    case SLICE_KEY_SWITCH:
        return dict_number;
    default:
        return dict_text;
    }
}

/* To be freed. */
static char *cell_of(const Column *column, GVariant *object)
{
    CellFunc cell = column->cell ? column->cell : cell_of_attribute(slice_key_find(column->key));

    return cell(object, column->key);
}

static void add_row(SmartTable *table, const Options *options, const Listing *listing,
                    GVariant *object)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);
    guint at = 0;

    for (guint i = 0; i < listing->columns_count; i++) {
        const Column *column = &listing->columns[i];

        if (is_shown(options, column))
            set_cell(options, line, at++, cell_of(column, object), column->flags);
    }
}

/*
 * @row with its members as objects of their own. As it came from the bus, each column's search
 * would make an object of each member that it passes, which was a third of the time of a list of a
 * thousand. g_variant_lookup() undoes it, g_variant_lookup_value() does not.
 */
static GVariant *unpack_row(GVariant *row)
{
    gsize count = g_variant_n_children(row);
    g_autofree GVariant **members = g_new(GVariant *, count);

    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) member = g_variant_get_child_value(row, i);
        g_autoptr(GVariant) name = g_variant_get_child_value(member, 0);
        g_autoptr(GVariant) content = g_variant_get_child_value(member, 1);

        members[i] = g_variant_new_dict_entry(name, content);
    }
    return g_variant_ref_sink(g_variant_new_array(G_VARIANT_TYPE("{sv}"), members, count));
}

static void print_table(const Options *options, const Listing *listing, GVariant *objects)
{
    SmartTable *table = table_new(options, !options->no_headers);

    for (guint i = 0; i < listing->columns_count; i++)
        if (is_shown(options, &listing->columns[i]))
            add_column(table, options, listing->columns[i].head, listing->columns[i].flags);
    for (gsize i = 0; i < g_variant_n_children(objects); i++) {
        g_autoptr(GVariant) object = g_variant_get_child_value(objects, i);
        g_autoptr(GVariant) row = unpack_row(object);

        add_row(table, options, listing, row);
    }
    print_and_free(table, options);
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

static void add_line(SmartTable *table, const Options *options, const Column *column,
                     GVariant *object)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);

    set_cell(options, line, 0, g_strconcat(column->head, ":", NULL), 0);
    set_cell(options, line, 1, cell_of(column, object), column->flags);
}

static void add_attributes(SmartTable *table, const Options *options, GVariant *slice)
{
    for (guint i = 0; i < slice_keys_count; i++) {
        const SliceKey *key = &slice_keys[i];
        g_autoptr(GVariant) value = g_variant_lookup_value(slice, key->name, NULL);

        if (key->label && value)
            add_line(table, options, &(Column){key->label, key->name, NULL, 0}, slice);
    }
}

static void print_lines(const Options *options, const Listing *listing, GVariant *object)
{
    SmartTable *table = table_new(options, FALSE);

    add_column(table, options, "NAME", 0);
    add_column(table, options, "VALUE", 0);
    if (listing->title)
        add_line(table, options, &(Column){listing->title, listing->name, dict_text, 0}, object);
    if (listing->is_slice)
        add_attributes(table, options, object);
    for (guint i = 0; i < listing->lines_count; i++)
        add_line(table, options, &listing->lines[i], object);
    print_and_free(table, options);
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
    SmartTable *table = table_new(options, !options->no_headers);
    struct libscols_line *line = NULL;

    for (guint i = 0; i < columns; i++)
        add_column(table, options, heads[i], 0);
    for (guint i = 0; i < cells->len; i++) {
        if (i % columns == 0)
            line = scols_table_new_line(table, NULL);
        set_cell(options, line, i % columns, g_strdup(g_ptr_array_index(cells, i)), 0);
    }
    print_and_free(table, options);
}

/* Members of a dictionary from vgpud as cells of a table. */

const char *dict_string(GVariant *dict, const char *key)
{
    const char *value = "";

    g_variant_lookup(dict, key, "&s", &value);
    return value;
}

char *dict_text(GVariant *dict, const char *key)
{
    g_autoptr(GVariant) value = g_variant_lookup_value(dict, key, G_VARIANT_TYPE_STRING);

    return value ? g_variant_dup_string(value, NULL) : NULL;
}

char *dict_number(GVariant *dict, const char *key)
{
    g_autoptr(GVariant) value = g_variant_lookup_value(dict, key, NULL);

    return value ? g_variant_print(value, FALSE) : NULL;
}

char *dict_limit(GVariant *dict, const char *key)
{
    char *number = dict_number(dict, key);

    if (g_strcmp0(number, "0") == 0)
        g_clear_pointer(&number, g_free);
    return number;
}

char *dict_flag(GVariant *dict, const char *key)
{
    g_autoptr(GVariant) value = g_variant_lookup_value(dict, key, G_VARIANT_TYPE_BOOLEAN);

    return value ? g_strdup(g_variant_get_boolean(value) ? "yes" : "no") : NULL;
}

char *dict_bytes(GVariant *dict, const char *key)
{
    g_autoptr(GVariant) value = g_variant_lookup_value(dict, key, G_VARIANT_TYPE_UINT64);

    return text_of_bytes(value ? g_variant_get_uint64(value) : 0);
}

char *dict_list(GVariant *dict, const char *key, const char *between)
{
    g_autofree const char **list = NULL;

    return g_variant_lookup(dict, key, "^a&s", &list) ? g_strjoinv(between, (char **)list) : NULL;
}

/* --gpu, --tenant, --type and --state of the commands that list objects. */

/* Between the driver's name and the type's. */
#define TYPE_MARK "-vgpu-"

static char **gpus;
static char **tenants;
static char **types;
static char **filter_states;

#define GPU_OPTION                                                                                 \
    {"gpu", 0, 0, G_OPTION_ARG_STRING_ARRAY, &gpus, "Only of this GPU; may be a pattern", "GPU"}
#define TENANT_OPTION                                                                              \
    {"tenant", 0, 0, G_OPTION_ARG_STRING_ARRAY, &tenants, "Only of this tenant; '': of none",      \
     "TENANT"}
#define TYPE_OPTION {"type", 0, 0, G_OPTION_ARG_STRING_ARRAY, &types, "Only of this type", "TYPE"}
#define STATE_OPTION(words)                                                                        \
    {"state", 0, 0, G_OPTION_ARG_STRING_ARRAY, &filter_states, "Only in this state: " words,       \
     "STATE"}

const GOptionEntry gpu_list_options[] = {
    GPU_OPTION,
    STATE_OPTION("a mode, draining, healthy, unhealthy"),
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry slice_list_options[] = {
    GPU_OPTION,
    TENANT_OPTION,
    TYPE_OPTION,
    STATE_OPTION("used, free; of a vGPU running, open, closed, stopped, lost; or its engine's: "
                 "ready, failed, starting"),
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry type_list_options[] = {
    GPU_OPTION,
    TYPE_OPTION,
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry tenant_list_options[] = {
    TENANT_OPTION,
    G_OPTION_ENTRY_NULL,
};

/* A type's own name, without the driver's prefix: "half" is "amdgpu-vgpu-half". */
static gboolean filter_type_is(const char *type, const char *name)
{
    const char *own = strstr(type, TYPE_MARK);

    return g_str_equal(type, name) || (own && g_str_equal(own + strlen(TYPE_MARK), name));
}

static gboolean is_gpu(const char *value, const char *asked)
{
    return client_address_is(value, asked) || fnmatch(asked, value, 0) == 0;
}

static gboolean is_same(const char *value, const char *asked)
{
    return g_str_equal(value, asked);
}

static gboolean fits_filter(GVariant *object, const char *key, char **asked,
                            gboolean (*is)(const char *value, const char *asked))
{
    const char *value = "";

    if (!key || !asked)
        return TRUE;
    g_variant_lookup(object, key, "&s", &value);
    for (char **at = asked; *at; at++)
        if (is(value, *at))
            return TRUE;
    return FALSE;
}

static gboolean fits_state(GVariant *object, const char *const *keys)
{
    if (!keys || !filter_states)
        return TRUE;
    for (; *keys; keys++)
        if (fits_filter(object, *keys, filter_states, is_same))
            return TRUE;
    return FALSE;
}

gboolean filter_has_state(void *object, FilterIsInState is)
{
    for (char **at = filter_states; at && *at; at++)
        if (is(object, *at))
            return TRUE;
    return !filter_states;
}

static gboolean check_states(const Filter *filter, GError **error)
{
    g_autofree char *all = filter->words ? g_strjoinv(", ", (char **)filter->words) : NULL;

    for (char **at = filter_states; filter->words && at && *at; at++) {
        if (g_strv_contains(filter->words, *at))
            continue;
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--state cannot be \"%s\": it must be one of %s", *at, all);
        return FALSE;
    }
    return TRUE;
}

/* The objects, of aa{sv}, that fit all options; several values of an option are alternatives. Takes
 * @objects. NULL with VGPUCTL_USAGE for a state that there is not. */
static GVariant *filter_apply(GVariant *objects, const Filter *filter, GError **error)
{
    g_autoptr(GVariant) all = objects;
    GVariantBuilder some;

    if (!check_states(filter, error))
        return NULL;
    if (!gpus && !tenants && !types && !filter_states)
        return g_steal_pointer(&all);
    g_variant_builder_init(&some, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(all); i++) {
        g_autoptr(GVariant) object = g_variant_get_child_value(all, i);

        if (fits_filter(object, filter->gpu, gpus, is_gpu) &&
            fits_filter(object, filter->tenant, tenants, is_same) &&
            fits_filter(object, filter->type, types, filter_type_is) &&
            fits_state(object, filter->states))
            g_variant_builder_add_value(&some, object);
    }
    return g_variant_ref_sink(g_variant_builder_end(&some));
}

/* Objects of a list, found by the names that people give. */

gboolean object_is_slice(GVariant *object, const char *name)
{
    const char *own = dict_string(object, "Name");
    g_autofree char *full = g_strconcat(dict_string(object, "Tenant"), "/", own, NULL);

    return g_ascii_strcasecmp(dict_string(object, "Uuid"), name) == 0 ||
           (*own && (g_str_equal(own, name) || g_str_equal(full, name)));
}

gboolean object_is_named(GVariant *object, const char *name)
{
    return g_str_equal(dict_string(object, "Name"), name);
}

gboolean object_is_type(GVariant *object, const char *name)
{
    return filter_type_is(dict_string(object, "Id"), name);
}

static guint add_called(GPtrArray *found, GVariant *objects, const char *name, ObjectIs is)
{
    guint before = found->len;

    for (gsize i = 0; i < g_variant_n_children(objects); i++) {
        g_autoptr(GVariant) object = g_variant_get_child_value(objects, i);

        if (is(object, name))
            g_ptr_array_add(found, g_steal_pointer(&object));
    }
    return found->len - before;
}

gboolean objects_list(const Options *options, const Listing *listing, GVariant *objects,
                      const Filter *filter, GError **error)
{
    g_autoptr(GVariant) found =
        objects ? filter_apply(g_variant_take_ref(objects), filter, error) : NULL;

    if (!found)
        return FALSE;
    listing_print(options, listing, found);
    return TRUE;
}

gboolean objects_show(const Options *options, const Listing *listing, GVariant *objects,
                      char **names, ObjectIs is, const char *what, const char *list_command,
                      GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func((GDestroyNotify)g_variant_unref);
    g_autoptr(GError) missing = NULL;

    for (char **name = names; *name; name++) {
        if (add_called(found, objects, *name, is))
            continue;
        if (missing)
            each_print_error(missing);
        g_clear_error(&missing);
        missing = g_error_new(VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
                              "there is no %s %s; \"vgpuctl %s\" shows those that there are", what,
                              *name, list_command);
    }
    if (found->len)
        listing_show(options, listing, found, g_strv_length(names) > 1);
    if (!missing)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&missing));
    return FALSE;
}
