/* SPDX-License-Identifier: MIT */
/*
 * Text in the format that Prometheus reads (its text exposition format, version 0.0.4). A family is
 * begun, then all its samples are added.
 */
#ifndef VGPUD_METRICS_EXPOSITION_H
#define VGPUD_METRICS_EXPOSITION_H

#include <glib.h>

typedef struct Exposition Exposition;

Exposition *exposition_new(void);

/* Frees it and returns the text. @length: of it. */
char *exposition_end(Exposition *exposition, gsize *length);

typedef enum { METRIC_GAUGE, METRIC_COUNTER } MetricType;

/* @name, @help: static strings; the samples that follow are of this family. */
void exposition_family(Exposition *exposition, const char *name, MetricType type, const char *help);

/* @labels: as exposition_label() makes them, "" for none. */
void exposition_count(Exposition *exposition, const char *labels, guint64 value);
void exposition_number(Exposition *exposition, const char *labels, double value);

/* Adds NAME="VALUE" to @labels, with what must be escaped in a value escaped. */
void exposition_label(GString *labels, const char *name, const char *value);

#endif
