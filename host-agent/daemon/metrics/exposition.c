/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/metrics/exposition.h"

#include <string.h>

#define DIGITS 20 /* digits of the largest guint64 */

struct Exposition {
    GString *text;
    const char *name;
    gsize name_length;
};

Exposition *exposition_new(void)
{
    Exposition *exposition = g_new0(Exposition, 1);

    exposition->text = g_string_sized_new(64 * 1024);
    return exposition;
}

char *exposition_end(Exposition *exposition, gsize *length)
{
    GString *text = exposition->text;

    g_free(exposition);
    *length = text->len;
    return g_string_free(text, FALSE);
}

void exposition_family(Exposition *exposition, const char *name, MetricType type, const char *help)
{
    exposition->name = name;
    exposition->name_length = strlen(name);
    g_string_append_printf(exposition->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
                           type == METRIC_COUNTER ? "counter" : "gauge");
}

static void begin_sample(Exposition *exposition, const char *labels)
{
    GString *text = exposition->text;

    g_string_append_len(text, exposition->name, (gssize)exposition->name_length);
    if (labels[0]) {
        g_string_append_c(text, '{');
        g_string_append(text, labels);
        g_string_append_c(text, '}');
    }
    g_string_append_c(text, ' ');
}

/*
 * Without printf, which would take most of the time: a host with a thousand vGPUs has ten thousand
 * samples.
 */
void exposition_count(Exposition *exposition, const char *labels, guint64 value)
{
    char digits[DIGITS];
    guint at = DIGITS;

    begin_sample(exposition, labels);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    g_string_append_len(exposition->text, digits + at, DIGITS - at);
    g_string_append_c(exposition->text, '\n');
}

void exposition_number(Exposition *exposition, const char *labels, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    begin_sample(exposition, labels);
    g_string_append(exposition->text, g_ascii_formatd(text, sizeof(text), "%.15g", value));
    g_string_append_c(exposition->text, '\n');
}

void exposition_label(GString *labels, const char *name, const char *value)
{
    if (labels->len)
        g_string_append_c(labels, ',');
    g_string_append(labels, name);
    g_string_append(labels, "=\"");
    for (; *value; value++) {
        if (*value == '\n')
            g_string_append(labels, "\\n");
        else if (*value == '"' || *value == '\\')
            g_string_append_printf(labels, "\\%c", *value);
        else
            g_string_append_c(labels, *value);
    }
    g_string_append_c(labels, '"');
}
