/* SPDX-License-Identifier: MIT */
#include "numbers.h"

#include <gio/gio.h>
#include <math.h>

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double values_quantile(GArray *values, double q)
{
    if (!values->len)
        return NAN;
    g_array_sort(values, compare_numbers);
    return g_array_index(values, double, (guint)(q * (values->len - 1) + 0.5));
}

JsonObject *summary_of(GArray *values)
{
    JsonObject *summary = json_object_new();

    json_object_set_double_member(summary, "median", values_quantile(values, 0.5));
    json_object_set_double_member(summary, "low", g_array_index(values, double, 0));
    json_object_set_double_member(summary, "high", g_array_index(values, double, values->len - 1));
    return summary;
}

JsonObject *object_of(const char *text, GError **error)
{
    g_autoptr(JsonNode) node = json_from_string(text, error);

    if (node && JSON_NODE_HOLDS_OBJECT(node))
        return json_node_dup_object(node);
    if (node)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "no JSON object: %.60s", text);
    return NULL;
}
