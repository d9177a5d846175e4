/* SPDX-License-Identifier: MIT */
#include "lib/audit.h"

#include <glib.h>
#include <string.h>

/* The value of @key, to its end; NULL: the state has no such member. To be freed. */
static char *value_of(char **state, const char *key, gsize length)
{
    for (; *state; state++)
        if (strncmp(*state, key, length) == 0 && (*state)[length] == '=')
            return g_strdup(*state + length + 1);
    return NULL;
}

static void add_change(GString *text, const char *key, gsize length, const char *from,
                       const char *to)
{
    if (g_strcmp0(from, to) == 0)
        return;
    g_string_append_printf(text, "%s%.*s %s -> %s", text->len ? AUDIT_BETWEEN : "", (int)length,
                           key, from && *from ? from : "-", to && *to ? to : "-");
}

char *audit_difference(const char *before, const char *after)
{
    g_auto(GStrv) from = g_strsplit(before, AUDIT_BETWEEN, -1);
    g_auto(GStrv) to = g_strsplit(after, AUDIT_BETWEEN, -1);
    GString *text = g_string_new(NULL);

    if (!*before && *after)
        g_string_append(text, "created");
    else if (*before && !*after)
        g_string_append(text, "removed");
    else
        for (char **at = to; *at; at++) {
            gsize length = strcspn(*at, "=");
            g_autofree char *old = value_of(from, *at, length);
            g_autofree char *new = value_of(to, *at, length);

            add_change(text, *at, length, old, new);
        }
    return g_string_free(text, FALSE);
}
