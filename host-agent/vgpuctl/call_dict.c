/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/call_dict.h"

#include "host-agent/vgpuctl/client.h"
#include "lib/units.h"

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

gboolean call_dict_add_switch(GVariantDict *dict, const char *key, const char *option,
                              const char *text, GError **error)
{
    static const char *const words[][2] = {{"0", "off"}, {"1", "on"}};

    if (!text)
        return TRUE;
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
