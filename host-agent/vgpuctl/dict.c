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
