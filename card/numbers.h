/* SPDX-License-Identifier: MIT */
/* Medians and their values. */
#ifndef CARD_NUMBERS_H
#define CARD_NUMBERS_H

#include <json-glib/json-glib.h>

/* Sorts @values; 0 < @q < 1. NAN if there are none. */
double values_quantile(GArray *values, double q);

/* {"median", "low", "high"} of @values (double), which are sorted. */
JsonObject *summary_of(GArray *values);

/* @text as a JSON object. */
JsonObject *object_of(const char *text, GError **error);

#endif
