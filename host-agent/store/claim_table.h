/* SPDX-License-Identifier: MIT */
/*
 * Which container has which slice, as the database keeps it over a restart of vgpud.
 */
#ifndef STORE_CLAIM_TABLE_H
#define STORE_CLAIM_TABLE_H

#include "host-agent/store/db.h"

/**
 * Claim
 * @uuid: of the slice
 * @container: as its runtime calls it
 * @pid: of its first process
 * @started: when that began, in the kernel's ticks since boot
 */
typedef struct {
    char *uuid;
    char *container;
    guint pid;
    guint64 started;
} Claim;

void claim_free(Claim *claim);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Claim, claim_free)

/* All that were made in the boot of that id, of Claim; others are taken away. NULL with @error. */
GPtrArray *claim_table_read(Db *db, const char *boot, GError **error);

gboolean claim_table_put(Db *db, const char *boot, const Claim *claim, GError **error);

gboolean claim_table_remove(Db *db, const char *uuid, GError **error);

#endif
