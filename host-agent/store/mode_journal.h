/* SPDX-License-Identifier: MIT */
/* The state of a mode switch that must survive kill -9 and power loss. */
#ifndef STORE_MODE_JOURNAL_H
#define STORE_MODE_JOURNAL_H

#include "host-agent/store/db.h"
#include "lib/gpus.h"

/**
 * JournalEntry - a switch that has not ended
 * @origin: the mode before it
 * @switching: steps may have been done already; else it was still waiting for the GPU's users
 */
typedef struct {
    char *gpu;
    GpuMode origin;
    GpuMode target;
    gboolean switching;
    guint partitions;
} JournalEntry;

/* Of JournalEntry. Errors are logged, and give an empty list. */
GPtrArray *journal_read(Db *db);

/* Begins a switch, or changes its phase. */
gboolean journal_write(Db *db, const JournalEntry *entry, GError **error);

/* It has ended. Errors are logged: the next start would find it done already. */
void journal_end(Db *db, const char *gpu);

/* vGPUs to be started when the GPU is shared again. */
gboolean journal_add_stopped(Db *db, const char *gpu, const char *const *uuids, GError **error);
GStrv journal_stopped(Db *db, const char *gpu);
void journal_forget_stopped(Db *db, const char *uuid);

/* Whether an operator drains the GPU. */
gboolean journal_drained(Db *db, const char *gpu);
gboolean journal_set_drained(Db *db, const char *gpu, gboolean drained, GError **error);

#endif
