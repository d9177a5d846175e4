/* SPDX-License-Identifier: MIT */
#include "host-agent/model/dict_read.h"

#include "lib/bus.h"

#define MAX_TEXT 255
#define MAX_LIST 1024

static const DictKey *find(const DictKey *keys, gsize count, const char *name)
{
    for (gsize i = 0; i < count; i++)
        if (g_str_equal(keys[i].key, name))
            return &keys[i];
    return NULL;
}

static const char *type_string(char type)
{
    switch (type) {
    case 's':
        return "s";
    case 't':
        return "t";
    case 'u':
        return "u";
    case 'i':
        return "i";
    case 'a':
        return "as";
    default:
        return "b";
    }
}

static gboolean bad(GError **error, const char *key, const char *why)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "%s %s", key, why);
    return FALSE;
}

static gboolean unknown(GError **error, const DictKey *keys, gsize count, const char *name)
{
    g_autoptr(GString) known = g_string_new(NULL);

    for (gsize i = 0; i < count; i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", keys[i].key);
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "unknown key %s; allowed are: %s", name, known->str);
    return FALSE;
}

static gboolean check_number(const DictKey *key, guint64 number, GError **error)
{
    g_autofree char *why = NULL;

    if ((!key->min && !key->max) || (number >= key->min && number <= key->max))
        return TRUE;
    why = g_strdup_printf("must be from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                          ", not %" G_GUINT64_FORMAT,
                          key->min, key->max, number);
    return bad(error, key->key, why);
}

static gboolean read_text(const DictKey *key, GVariant *value, GError **error)
{
    gsize length;
    const char *text = g_variant_get_string(value, &length);

    if (length > MAX_TEXT)
        return bad(error, key->key, "is longer than 255 characters");
    g_free(*(char **)key->value);
    *(char **)key->value = g_strdup(text);
    return TRUE;
}

static gboolean read_list(const DictKey *key, GVariant *value, GError **error)
{
    if (g_variant_n_children(value) > MAX_LIST)
        return bad(error, key->key, "has more than 1024 entries");
    g_strfreev(*(GStrv *)key->value);
    *(GStrv *)key->value = g_variant_dup_strv(value, NULL);
    return TRUE;
}

static gboolean read_value(const DictKey *key, GVariant *value, GError **error)
{
    if (key->given)
        *key->given = TRUE;
    switch (key->type) {
    case 's':
        return read_text(key, value, error);
    case 'a':
        return read_list(key, value, error);
    case 't':
        *(guint64 *)key->value = g_variant_get_uint64(value);
        return check_number(key, *(guint64 *)key->value, error);
    case 'u':
        *(guint *)key->value = g_variant_get_uint32(value);
        return check_number(key, *(guint *)key->value, error);
    case 'i':
        *(int *)key->value = g_variant_get_int32(value);
        return TRUE;
    default:
        *(gboolean *)key->value = g_variant_get_boolean(value);
        return TRUE;
    }
}

static gboolean read_entry(const DictKey *key, const char *name, GVariant *value, GError **error)
{
    g_autofree char *why = NULL;

    if (g_variant_is_of_type(value, G_VARIANT_TYPE(type_string(key->type))))
        return read_value(key, value, error);
    why = g_strdup_printf("must be of the D-Bus type \"%s\", not \"%s\"", type_string(key->type),
                          g_variant_get_type_string(value));
    return bad(error, name, why);
}

gboolean dict_read(GVariant *dict, const DictKey *keys, gsize count, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GVariantIter iter;
    const DictKey *key;
    const char *name;
    GVariant *value;

    g_variant_iter_init(&iter, dict);
    while (g_variant_iter_next(&iter, "{&sv}", &name, &value)) {
        g_autoptr(GVariant) owned = value;

        if (!g_hash_table_add(seen, g_strdup(name)))
            return bad(error, name, "is there twice");
        key = find(keys, count, name);
        if (!key)
            return unknown(error, keys, count, name);
        if (!read_entry(key, name, owned, error))
            return FALSE;
    }
    return TRUE;
}
