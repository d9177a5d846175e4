/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/nvlink.h"

static gboolean are_linked(GVariant *rows, guint a, guint b)
{
    g_autoptr(GVariant) row =
        a < g_variant_n_children(rows) ? g_variant_get_child_value(rows, a) : NULL;
    const char *word = "";

    if (row && b < g_variant_n_children(row))
        g_variant_get_child(row, b, "&s", &word);
    return a == b || g_str_has_prefix(word, "NV");
}

/* -1: those that it is linked to are not linked in the same way. */
static int first_of_domain(const gboolean *linked, guint count, guint card)
{
    int first = -1;
    guint members = 0;

    for (guint i = 0; i < count; i++) {
        if (!linked[card * count + i])
            continue;
        for (guint k = 0; k < count; k++)
            if (linked[card * count + k] != linked[i * count + k])
                return -1;
        first = members++ ? first : (int)i;
    }
    return members > 1 ? first : -1;
}

void nvlink_domains(GVariant *rows, guint count, int *domains)
{
    g_autofree gboolean *linked = g_new(gboolean, count * count);

    for (guint a = 0; a < count; a++)
        for (guint b = 0; b < count; b++)
            linked[a * count + b] = are_linked(rows, a, b);
    for (guint card = 0; card < count; card++)
        domains[card] = first_of_domain(linked, count, card);
}
