/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/dict.h"

#include "host-agent/vgpuctl/text.h"

char *dict_text(GVariant *dict, const char *key)
{
    char *text = NULL;

    g_variant_lookup(dict, key, "s", &text);
    return text;
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
    gboolean flag;

    return g_variant_lookup(dict, key, "b", &flag) ? g_strdup(flag ? "yes" : "no") : NULL;
}

char *dict_bytes(GVariant *dict, const char *key)
{
    guint64 bytes = 0;

    g_variant_lookup(dict, key, "t", &bytes);
    return text_of_bytes(bytes);
}

char *dict_list(GVariant *dict, const char *key, const char *between)
{
    g_autofree const char **list = NULL;

    return g_variant_lookup(dict, key, "^a&s", &list) ? g_strjoinv(between, (char **)list) : NULL;
}
