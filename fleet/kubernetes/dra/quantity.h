/* SPDX-License-Identifier: MIT */
/* Kubernetes' quantities: "8Gi", "30", "1500M", "2e9". */
#ifndef KUBERNETES_DRA_QUANTITY_H
#define KUBERNETES_DRA_QUANTITY_H

#include <glib.h>

/* Rounds up. FALSE: it is no quantity, is negative, or does not fit. */
gboolean quantity_parse(const char *text, guint64 *value);

/* Bytes as the API writes them: with the largest of its binary suffixes. To be freed. */
char *quantity_format(guint64 bytes);

#endif
