/* SPDX-License-Identifier: MIT */
/*
 * What is kept of each GPU besides its mode: what is wrong with it, where a best-effort slice was
 * stopped for want of memory, and which switch of the timetable was seen to. Times are seconds
 * since 1970.
 */
#ifndef STORE_GPU_TABLE_H
#define STORE_GPU_TABLE_H

#include "host-agent/model/gpu_health.h"
#include "host-agent/store/db.h"

/* @gpu has what @kind says, for @reason. */
gboolean gpu_table_add_finding(Db *db, const char *gpu, HealthKind kind, const char *reason,
                               gint64 since, GError **error);
gboolean gpu_table_end_finding(Db *db, const char *gpu, HealthKind kind, GError **error);

/* An operator knows of all that is wrong with @gpu, and of errors up to these counters of the kernel in @boot. */
gboolean gpu_table_clear(Db *db, const char *gpu, const char *boot, guint64 aer_fatal, guint64 ecc,
                         GError **error);

typedef void (*GpuFindingFunc)(const char *gpu, HealthKind kind, const char *reason, void *data);
typedef void (*GpuClearedFunc)(const char *gpu, guint64 aer_fatal, guint64 ecc, void *data);

/*
 * Forgets the findings that end by themselves, and calls @finding for each of the others, which an
 * operator has to clear; @cleared for what was cleared in @boot.
 */
gboolean gpu_table_load(Db *db, const char *boot, GpuFindingFunc finding, GpuClearedFunc cleared,
                        void *data, GError **error);

/* Until @until none of the tenant's best-effort slices is put on @gpu again. Forgets those before @now. */
gboolean gpu_table_evict(Db *db, const char *gpu, const char *tenant, gint64 now, gint64 until,
                         GError **error);

/* Errors are logged, and mean no. */
gboolean gpu_table_is_evicted(Db *db, const char *gpu, const char *tenant, gint64 now);

/* When the switch was due that was seen to last; 0: none, or it can't be read, which is logged. */
gint64 gpu_table_due(Db *db, const char *gpu);
gboolean gpu_table_set_due(Db *db, const char *gpu, gint64 due, GError **error);

#endif
