/* SPDX-License-Identifier: MIT */
/*
 * Prometheus's text exposition format, version 0.0.4. A family is begun, then all its samples are
 * added; or a table of families is added for rows of numbers.
 */
#ifndef METER_EXPOSITION_H
#define METER_EXPOSITION_H

#include <glib.h>
#include <stddef.h>

typedef struct Exposition Exposition;

Exposition *exposition_new(void);

/* Frees it and returns the text. @length: of it. */
char *exposition_end(Exposition *exposition, gsize *length);

typedef enum { METRIC_GAUGE, METRIC_COUNTER } MetricType;

/* @name, @help: static strings; the following samples belong to this family. */
void exposition_family(Exposition *exposition, const char *name, MetricType type, const char *help);

/* @labels: made by exposition_label(), "" for none. */
void exposition_count(Exposition *exposition, const char *labels, guint64 value);
void exposition_number(Exposition *exposition, const char *labels, double value);

/* The same with further labels: names and values in turn, then NULL. */
void exposition_count_of(Exposition *exposition, const char *labels, guint64 value,
                         const char *name, ...) G_GNUC_NULL_TERMINATED;

/* Adds NAME="VALUE" to @labels, with the value escaped. */
void exposition_label(GString *labels, const char *name, const char *value);

/* Names and values in turn, then NULL. To be freed. */
char *exposition_labels(const char *name, ...) G_GNUC_NULL_TERMINATED;

typedef enum { NUMBER_NONE, NUMBER_U64, NUMBER_I64, NUMBER_UINT, NUMBER_INT } NumberKind;

/* Where a number is in a structure. */
typedef struct {
    NumberKind kind;
    gsize at;
} Number;

#define NUMBER(structure, field)                                                                   \
    {_Generic(((const structure *)NULL)->field,                                                    \
         guint64: NUMBER_U64,                                                                      \
         gint64: NUMBER_I64,                                                                       \
         guint: NUMBER_UINT,                                                                       \
         gint: NUMBER_INT),                                                                        \
     offsetof(structure, field)}

/**
 * Metric - a family whose samples are numbers of rows
 * @part: which of a row's structures has the number
 * @known: another number of it: 0: this one is not known, and is left out, as a 0 would look like
 * one that is; NUMBER_NONE: it is always known
 * @unit: what the number is divided by; 0: it is not
 */
typedef struct {
    const char *name;
    MetricType type;
    const char *help;
    guint part;
    Number value;
    Number known;
    double unit;
} Metric;

#define METRIC_PARTS 3

/**
 * MetricRow
 * @parts: its structures; NULL: it has no numbers of that one
 */
typedef struct {
    char *labels;
    const void *parts[METRIC_PARTS];
} MetricRow;

/* Of MetricRow; it owns their labels. */
GArray *metric_rows_new(void);

void exposition_add(Exposition *exposition, const Metric *metrics, guint count, const GArray *rows);

#endif
