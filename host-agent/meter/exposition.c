/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/exposition.h"

#include <stdarg.h>
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

static void add_labels(GString *labels, const char *name, va_list rest)
{
    for (; name; name = va_arg(rest, const char *))
        exposition_label(labels, name, va_arg(rest, const char *));
}

char *exposition_labels(const char *name, ...)
{
    GString *labels = g_string_sized_new(128);
    va_list rest;

    va_start(rest, name);
    add_labels(labels, name, rest);
    va_end(rest);
    return g_string_free(labels, FALSE);
}

void exposition_count_of(Exposition *exposition, const char *labels, guint64 value,
                         const char *name, ...)
{
    g_autoptr(GString) all = g_string_new(labels);
    va_list rest;

    va_start(rest, name);
    add_labels(all, name, rest);
    va_end(rest);
    exposition_count(exposition, all->str, value);
}

static void clear_row(void *row)
{
    g_free(((MetricRow *)row)->labels);
}

GArray *metric_rows_new(void)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(MetricRow));

    g_array_set_clear_func(rows, clear_row);
    return rows;
}

/* 1 if there is no such number. */
static double read_number(const void *part, const Number *number)
{
    const void *at = (const char *)part + number->at;

    switch (number->kind) {
    case NUMBER_U64:
        return (double)*(const guint64 *)at;
    case NUMBER_I64:
        return (double)*(const gint64 *)at;
    case NUMBER_UINT:
        return *(const guint *)at;
    case NUMBER_INT:
        return *(const gint *)at;
    case NUMBER_NONE:
        break;
    }
    return 1;
}

static void add_sample(Exposition *exposition, const Metric *metric, const MetricRow *row)
{
    const void *part = row->parts[metric->part];
    const Number *value = &metric->value;

    if (!part || read_number(part, &metric->known) == 0)
        return;
    if (metric->unit != 0)
        exposition_number(exposition, row->labels, read_number(part, value) / metric->unit);
    else if (value->kind == NUMBER_U64)
        exposition_count(exposition, row->labels,
                         *(const guint64 *)((const char *)part + value->at));
    else
        exposition_number(exposition, row->labels, read_number(part, value));
}

void exposition_add(Exposition *exposition, const Metric *metrics, guint count, const GArray *rows)
{
    for (guint i = 0; i < count; i++) {
        exposition_family(exposition, metrics[i].name, metrics[i].type, metrics[i].help);
        for (guint k = 0; k < rows->len; k++)
            add_sample(exposition, &metrics[i], &g_array_index(rows, MetricRow, k));
    }
}
