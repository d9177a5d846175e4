/* SPDX-License-Identifier: MIT */
/*
 * What has to survive kill -9 and power loss of a switch of a GPU's mode.
 */
#ifndef STORE_MODE_JOURNAL_H
#define STORE_MODE_JOURNAL_H

#include "host-agent/store/db.h"
#include "lib/gpus.h"

/**
 * JournalEntry - a switch that was not ended
 * @origin: the mode before it
 * @switching: something may have been done already; else it was still waiting for who is in the way
 */
typedef struct {
    char *gpu;
    GpuMode origin;
    GpuMode target;
    gboolean switching;
    guint partitions;
} JournalEntry;

/* Of JournalEntry. Errors are logged, and leave it empty. */
GPtrArray *journal_read(Db *db);

/* Begins a switch, or changes its phase. */
gboolean journal_write(Db *db, const JournalEntry *entry, GError **error);

/* It has ended. Errors are logged: at the next start it would be found done already. */
void journal_end(Db *db, const char *gpu);

/* vGPUs that are to be started when the GPU is shared again. */
gboolean journal_add_stopped(Db *db, const char *gpu, const char *const *uuids, GError **error);
GStrv journal_stopped(Db *db, const char *gpu);
void journal_forget_stopped(Db *db, const char *uuid);

/* Whether an operator drains the GPU. */
gboolean journal_drained(Db *db, const char *gpu);
gboolean journal_set_drained(Db *db, const char *gpu, gboolean drained, GError **error);

#endif
