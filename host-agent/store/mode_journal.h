/* SPDX-License-Identifier: MIT */
/*
 * What outlives a switch of a GPU's mode: vGPUs that come back when it is shared again, and drains.
 */
#ifndef STORE_MODE_JOURNAL_H
#define STORE_MODE_JOURNAL_H

#include "host-agent/store/db.h"

/* vGPUs to be started when the GPU is shared again. */
gboolean journal_add_stopped(Db *db, const char *gpu, const char *const *uuids, GError **error);
GStrv journal_stopped(Db *db, const char *gpu);
void journal_forget_stopped(Db *db, const char *uuid);

/* Whether an operator drains the GPU. */
gboolean journal_drained(Db *db, const char *gpu);
gboolean journal_set_drained(Db *db, const char *gpu, gboolean drained, GError **error);

#endif
