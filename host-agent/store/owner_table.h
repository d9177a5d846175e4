/* SPDX-License-Identifier: MIT */
/*
 * What slices that were made for an engine's jobs have used: a row for each slice, from the first
 * sample until some time after its end. Their sum is what the owner has used, so that nothing is
 * counted twice whatever is repeated after a crash. And the pools of GPUs.
 */
#ifndef STORE_OWNER_TABLE_H
#define STORE_OWNER_TABLE_H

#include "host-agent/store/db.h"

/**
 * OwnerCounts - times in nanoseconds
 */
typedef struct {
    guint64 gpu_ns;
    guint64 waited_ns;
    guint64 throttled_ns;
} OwnerCounts;

/* Its GPU has no counter of energy. */
#define OWNER_NO_ENERGY (-1)

/**
 * OwnerUse - of one slice
 * @sum: since it was made
 * @last: the arbiter's counters when they were read last
 * @last_alone_ns: likewise, the meter's own (alone_time.h); not in the table, because it counts
 * anew
 * @peak_vram: bytes, the most that was seen
 * @energy_uj: microjoules, or OWNER_NO_ENERGY
 * @ended: seconds since 1970; 0: the slice exists
 * @changed: since it was stored; not in the table
 */
typedef struct {
    char *uuid;
    char *owner;
    OwnerCounts sum;
    OwnerCounts last;
    guint64 last_alone_ns;
    guint64 peak_vram;
    gint64 energy_uj;
    gint64 ended;
    gboolean changed;
} OwnerUse;

void owner_use_free(OwnerUse *use);

/* Of OwnerUse; NULL with @error. */
GPtrArray *owner_table_read(Db *db, GError **error);

gboolean owner_table_put(Db *db, const OwnerUse *use, GError **error);

gboolean owner_table_remove(Db *db, const char *uuid, GError **error);

/* The pool that was set by command; NULL: none, or it cannot be read, which is logged. To be freed.
 */
char *pool_table_get(Db *db, const char *gpu);

/* Addresses of the GPUs whose pool was set by command; NULL with @error. To be freed. */
GStrv pool_table_gpus(Db *db, GError **error);

/* @pool: NULL: none any more. */
gboolean pool_table_set(Db *db, const char *gpu, const char *pool, GError **error);

#endif
