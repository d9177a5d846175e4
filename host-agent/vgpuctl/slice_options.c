/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/slice_options.h"

#include <string.h>

#include "lib/conf.h"
#include "host-agent/vgpuctl/command.h"

void call_dict_add_text(GVariantDict *dict, const char *key, const char *value)
{
    if (value)
        g_variant_dict_insert(dict, key, "s", value);
}

void call_dict_add_list(GVariantDict *dict, const char *key, char **list)
{
    if (list)
        g_variant_dict_insert(dict, key, "^as", list);
}

void call_dict_add_number(GVariantDict *dict, const char *key, int value)
{
    if (value >= 0)
        g_variant_dict_insert(dict, key, "u", (guint)value);
}

void call_dict_add_flag(GVariantDict *dict, const char *key, gboolean value)
{
    if (value)
        g_variant_dict_insert(dict, key, "b", TRUE);
}

gboolean call_dict_add_size(GVariantDict *dict, const char *key, const char *option,
                            const char *text, gboolean zero, GError **error)
{
    guint64 bytes = 0;

    if (!text)
        return TRUE;
    if (!(zero && g_str_equal(text, "0")) && !size_parse(text, &bytes)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "%s cannot be \"%s\": it must be %s%s",
                    option, text, SIZE_RULE, zero ? ", or 0" : "");
        return FALSE;
    }
    g_variant_dict_insert(dict, key, "t", bytes);
    return TRUE;
}

/* "off" or "0", "on" or "1". */
static gboolean add_switch(GVariantDict *dict, const char *key, const char *option,
                           const char *text, GError **error)
{
    static const char *const words[][2] = {{"0", "off"}, {"1", "on"}};

    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        if (!g_str_equal(text, words[i][0]) && !g_str_equal(text, words[i][1]))
            continue;
        g_variant_dict_insert(dict, key, "u", i);
        return TRUE;
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "%s cannot be \"%s\": it must be on or off",
                option, text);
    return FALSE;
}

/* A size, or a part of the GPU's memory, as 30%. */
static gboolean add_vram(GVariantDict *dict, const char *text, GError **error)
{
    g_autofree char *number = NULL;
    guint64 percent;

    if (!g_str_has_suffix(text, "%"))
        return call_dict_add_size(dict, "Vram", "--vram", text, FALSE, error);
    number = g_strndup(text, strlen(text) - 1);
    if (!g_ascii_string_to_unsigned(number, 10, 1, 100, &percent, NULL)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--vram cannot be \"%s\": it must be %s, or 1%% to 100%%", text, SIZE_RULE);
        return FALSE;
    }
    g_variant_dict_insert(dict, "VramPercent", "u", (guint32)percent);
    return TRUE;
}

/* What was given for a row: a flag, a number, or a text; NULL and below 0: nothing. */
typedef struct {
    gboolean flag;
    int number;
    char *text;
} Given;

static Given given[64];

static GOptionEntry entry_of(const SliceKey *key, Given *value)
{
    GOptionEntry entry = {
        .long_name = key->column, .description = key->option, .arg_description = key->value};

    switch (key->type) {
    case SLICE_KEY_FLAG:
        entry.arg = G_OPTION_ARG_NONE;
        entry.arg_data = &value->flag;
        break;
    case SLICE_KEY_NUMBER:
    case SLICE_KEY_LEVEL:
        entry.arg = G_OPTION_ARG_INT;
        entry.arg_data = &value->number;
        break;
    default:
        entry.arg = G_OPTION_ARG_STRING;
        entry.arg_data = &value->text;
    }
    return entry;
}

const GOptionEntry *slice_options(guint uses)
{
    static GHashTable *made;
    GArray *entries;

    if (!made) {
        made = g_hash_table_new(NULL, NULL);
        for (guint i = 0; i < slice_keys_count; i++)
            given[i].number = -1;
    }
    entries = g_hash_table_lookup(made, GUINT_TO_POINTER(uses));
    if (entries)
        return (const GOptionEntry *)entries->data;
    entries = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));
    for (guint i = 0; i < slice_keys_count; i++) {
        GOptionEntry entry = entry_of(&slice_keys[i], &given[i]);

        if (slice_keys[i].option && slice_keys[i].uses & uses)
            g_array_append_val(entries, entry);
    }
    g_hash_table_insert(made, GUINT_TO_POINTER(uses), entries);
    return (const GOptionEntry *)entries->data;
}

static gboolean add_given(GVariantDict *dict, const SliceKey *key, const Given *value,
                          GError **error)
{
    g_autofree char *option = g_strconcat("--", key->column, NULL);

    if (value->flag)
        call_dict_add_flag(dict, key->name, TRUE);
    if (key->type == SLICE_KEY_NUMBER || key->type == SLICE_KEY_LEVEL)
        call_dict_add_number(dict, key->name, value->number);
    if (!value->text)
        return TRUE;
    if (key == slice_key_find("Vram"))
        return add_vram(dict, value->text, error);
    if (key->type == SLICE_KEY_BYTES)
        return call_dict_add_size(dict, key->name, option, value->text, !key->min, error);
    if (key->type == SLICE_KEY_SWITCH)
        return add_switch(dict, key->name, option, value->text, error);
    call_dict_add_text(dict, key->name, value->text);
    return TRUE;
}

gboolean slice_options_add(GVariantDict *dict, GError **error)
{
    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].option && !add_given(dict, &slice_keys[i], &given[i], error))
            return FALSE;
    return TRUE;
}
