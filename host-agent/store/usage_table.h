/* SPDX-License-Identifier: MIT */
/*
 * Usage in the database, for a year, and what a month of it comes to.
 */
#ifndef STORE_USAGE_TABLE_H
#define STORE_USAGE_TABLE_H

#include "host-agent/model/usage.h"
#include "host-agent/store/db.h"

/* Adds @rows, of UsageRow, to what the database has of their hours: all, or none. */
gboolean usage_table_add(Db *db, const GPtrArray *rows, GError **error);

/* Forgets what is older than a year at @now, seconds since 1970. */
gboolean usage_table_prune(Db *db, gint64 now, GError **error);

/* The hours from @begin, before @end, summed for each vGPU of @tenant ("": all); of ReportRow. */
GPtrArray *usage_table_sum(Db *db, const char *tenant, gint64 begin, gint64 end, GError **error);

#endif
