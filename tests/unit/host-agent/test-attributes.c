/* SPDX-License-Identifier: MIT */
/*
 * The table of a slice's attributes (slice_keys.h): each row goes everywhere where it says. Run in
 * the repository's root.
 */
#include <string.h>

#include "host-agent/model/slice_keys.h"
#include "host-agent/store/tables.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/slices_kit.h"

/* The names of the members of Slice, of char *. */
static GPtrArray *members_of_slice(void)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    char *end;
    GPtrArray *members = g_ptr_array_new_with_free_func(g_free);

    g_assert_true(g_file_get_contents("host-agent/model/slice.h", &text, NULL, NULL));
    end = strstr(text, "} Slice;");
    g_assert_nonnull(end);
    *end = '\0';
    lines = g_strsplit(g_strrstr(text, "typedef struct {"), "\n", -1);
    for (guint i = 1; lines[i]; i++) {
        const char *name = strrchr(lines[i], ' ');

        if (name && g_str_has_suffix(name, ";"))
            g_ptr_array_add(members, g_strndup(name + strspn(name, " *"), strcspn(name + 1, ";")));
    }
    return members;
}

/*
 * A member without a row would not be copied, stored or freed. What is expected of a slice is told
 * anew, and no more than numbers.
 */
static void test_all_members(void)
{
    g_autoptr(GPtrArray) members = members_of_slice();

    for (guint i = 0; i < slice_keys_count; i++)
        for (guint k = 0; k < i; k++) {
            g_assert_cmpuint(slice_keys[i].offset, !=, slice_keys[k].offset);
            g_assert_cmpstr(slice_keys[i].name, !=, slice_keys[k].name);
        }
    g_assert_cmpuint(members->len, ==, slice_keys_count + 1);
}

/* Another value than that of a new slice. */
static void set_other(const SliceKey *key, Slice *slice)
{
    if (key->type == SLICE_KEY_TEXT)
        slice_key_set_text(key, slice, key->name);
    else
        slice_key_set_number(key, slice, key->type == SLICE_KEY_ENGINES ? ENGINE_COMPUTE : 1);
}

static Slice *slice_of_other_values(void)
{
    Slice *slice = slice_new("", "", "");

    for (guint i = 0; i < slice_keys_count; i++)
        set_other(&slice_keys[i], slice);
    return slice;
}

static void assert_stored(const Slice *stored, const Slice *slice)
{
    for (guint i = 0; i < slice_keys_count; i++) {
        g_test_message("%s", slice_keys[i].name);
        g_assert_true(!slice_keys[i].column || slice_key_is_same(&slice_keys[i], stored, slice));
    }
}

static void test_stored(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(Db) db = db_open(root, &error);
    g_autoptr(Slice) slice = slice_of_other_values();
    g_autoptr(Slice) copy = slice_copy(slice);
    g_autoptr(GVariant) dict = g_variant_ref_sink(slice_to_dict(slice));
    g_autoptr(Slice) journaled = slice_from_dict(dict);
    g_autoptr(GPtrArray) rows = NULL;

    g_assert_no_error(error);
    assert_stored(copy, slice);
    assert_stored(journaled, slice);
    slice_table_put(db, slice, &error);
    g_assert_no_error(error);
    rows = slice_table_read(db, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(rows->len, ==, 1);
    assert_stored(g_ptr_array_index(rows, 0), slice);
    file_tree_free(root);
}

/* A value that a slice for a container can be given, for a command. To be freed. */
static char *value_to_set(const SliceKey *key)
{
    switch (key->type) {
    case SLICE_KEY_TEXT:
        return g_strdup("blue");
    case SLICE_KEY_CLASS:
        return g_strdup("burstable");
    case SLICE_KEY_ENGINES:
        return g_strdup("compute");
    case SLICE_KEY_BYTES:
        return g_strdup("2147483648");
    default:
        return g_strdup_printf("%" G_GUINT64_FORMAT, key->max);
    }
}

static gboolean is_to_set(const SliceKey *key)
{
    return (key->uses & SLICE_KEY_CHANGED) && key->type != SLICE_KEY_SWITCH;
}

static void assert_all_listed(void)
{
    for (guint i = 0; i < slice_keys_count; i++) {
        const SliceKey *key = &slice_keys[i];
        g_autofree char *value = value_to_set(key);
        const char *quote = slice_key_is_text(key) ? "\"" : "";
        g_autofree char *member =
            g_strdup_printf("\"%s\" : %s%s%s", key->name, quote, value, quote);

        if (is_to_set(key))
            assert_says("-o json slice show " UUID, 0, member, "");
    }
}

/* By its option in a command, and as lists have it, also after a restart. */
static void test_set_by_command(void)
{
    g_autoptr(GString) command = g_string_new("slice set " UUID);
    AgentOnBus at;

    open_shared(&at);
    assert_says("tenant set blue", 0, "", "");
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    for (guint i = 0; i < slice_keys_count; i++) {
        g_autofree char *option = g_ascii_strdown(slice_keys[i].name, -1);
        g_autofree char *value = value_to_set(&slice_keys[i]);

        if (is_to_set(&slice_keys[i]))
            g_string_append_printf(command, " --%s %s", option, value);
    }
    g_test_message("%s", command->str);
    assert_says(command->str, 0, "", "");
    assert_all_listed();
    agent_on_bus_restart(&at);
    assert_all_listed();
    agent_on_bus_close(&at);
}

/* From the driver and from definitions, which anybody may have written past the callout. */
static void test_adopted(void)
{
    static const char *const bad[] = {"", "-1", "a b"};

    for (guint i = 0; i < slice_keys_count; i++) {
        g_autoptr(Slice) slice = slice_new("", "", "");
        g_autofree char *value = value_to_set(&slice_keys[i]);
        g_autofree char *adopted = NULL;

        if (!slice_keys[i].attribute)
            continue;
        slice_key_adopt(&slice_keys[i], slice, value);
        for (guint k = 0; k < G_N_ELEMENTS(bad); k++)
            slice_key_adopt(&slice_keys[i], slice, bad[k]);
        slice_key_adopt(&slice_keys[i], slice, NULL);
        adopted = slice_key_text(&slice_keys[i], slice);
        g_assert_cmpstr(adopted, ==, value);
    }
}

/* In the help of a command that sets it, and in the list of all about a slice. */
static void test_options(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    for (guint i = 0; i < slice_keys_count; i++) {
        const SliceKey *key = &slice_keys[i];
        g_autofree char *option = g_strconcat("--", key->column, NULL);

        if (!(key->uses & SLICE_KEY_CHANGED))
            continue;
        g_test_message("%s", key->name);
        assert_says("slice set --help", 0, option, "");
        assert_says("slice set --help", 0, key->option, "");
        if (key->type != SLICE_KEY_SWITCH)
            assert_says("slice show " UUID, 0, key->label, "");
    }
    agent_on_bus_close(&at);
}

/* Text without line breaks and the space around them. To be freed. */
static char *in_one_line(const char *text)
{
    g_autoptr(GRegex) breaks = g_regex_new("\\s+", 0, 0, NULL);

    return g_regex_replace_literal(breaks, text, -1, 0, " ", 0, NULL);
}

/* The example of a row in CONTRIBUTING.md is one that there is. */
static void test_example(void)
{
    g_autofree char *page = NULL, *table = NULL, *joined = NULL;
    const char *row, *end;
    g_autofree char *example = NULL, *shown = NULL;

    g_assert_true(g_file_get_contents("CONTRIBUTING.md", &page, NULL, NULL));
    g_assert_true(g_file_get_contents("host-agent/model/slice_keys.c", &table, NULL, NULL));
    row = strstr(page, "    KEY(\"");
    g_assert_nonnull(row);
    end = strstr(row, "),");
    example = g_strndup(row + 4, (gsize)(end - row) - 2);
    shown = in_one_line(example);
    joined = in_one_line(table);
    g_assert_nonnull(strstr(joined, shown));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/attributes/all-members", test_all_members);
    g_test_add_func("/attributes/stored", test_stored);
    g_test_add_func("/attributes/set-by-command", test_set_by_command);
    g_test_add_func("/attributes/adopted", test_adopted);
    g_test_add_func("/attributes/options", test_options);
    g_test_add_func("/attributes/example", test_example);
    return g_test_run();
}
