/* SPDX-License-Identifier: MIT */
/*
 * Which container or program has which slice, as the database keeps it over a restart of vgpud.
 */
#ifndef STORE_CLAIM_TABLE_H
#define STORE_CLAIM_TABLE_H

#include "host-agent/store/db.h"

#define CLAIM_NO_USER (-1)

/**
 * Claim
 * @uuid: of the slice
 * @container: as its runtime calls it; of a program "NAME[PID]"
 * @pid: of its first process
 * @started: when that began, in the kernel's ticks since boot
 * @user: of a program that "vgpuctl run" has started; CLAIM_NO_USER: it is a container
 * @cgroup: of a program: the scope of systemd that is its own, below /sys/fs/cgroup; "": none
 */
typedef struct {
    char *uuid;
    char *container;
    guint pid;
    guint64 started;
    gint64 user;
    char *cgroup;
} Claim;

void claim_free(Claim *claim);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Claim, claim_free)

/* All that were made in the boot of that id, of Claim; others are taken away. NULL with @error. */
GPtrArray *claim_table_read(Db *db, const char *boot, GError **error);

gboolean claim_table_put(Db *db, const char *boot, const Claim *claim, GError **error);

gboolean claim_table_remove(Db *db, const char *uuid, GError **error);

#endif
