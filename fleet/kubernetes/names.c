/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/names.h"

#include <string.h>

/* A label may have 63 bytes, and so may an owner in vgpud, which has KUBE_SEATS_OWNER before it. */
#define LABEL_MAX 53

char *kube_device_name(const char *address)
{
    char *name = g_strconcat("gpu-", address, NULL);

    for (char *at = name; *at; at++)
        *at = g_ascii_isalnum(*at) ? g_ascii_tolower(*at) : '-';
    if (strlen(name) > LABEL_MAX)
        name[LABEL_MAX] = '\0';
    for (gsize last = strlen(name); last && name[last - 1] == '-'; last--)
        name[last - 1] = '\0';
    return name;
}

gboolean kube_is_name(const char *text)
{
    return text && g_regex_match_simple("^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$", text,
                                        G_REGEX_DOLLAR_ENDONLY, G_REGEX_MATCH_DEFAULT);
}
