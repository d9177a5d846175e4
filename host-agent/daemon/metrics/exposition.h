/* SPDX-License-Identifier: MIT */
/*
 * Prometheus's text exposition format, version 0.0.4. A family is begun, then all its samples are
 * added.
 */
#ifndef VGPUD_METRICS_EXPOSITION_H
#define VGPUD_METRICS_EXPOSITION_H

#include <glib.h>

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

/* Adds NAME="VALUE" to @labels, with the value escaped. */
void exposition_label(GString *labels, const char *name, const char *value);

#endif
