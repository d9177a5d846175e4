/* SPDX-License-Identifier: MIT */
/* How much of a GPU's memory slices have used in each hour of the last days, in the database. */
#ifndef STORE_MEMORY_TABLE_H
#define STORE_MEMORY_TABLE_H

#include "host-agent/model/memory_use.h"
#include "host-agent/store/db.h"

/* Adds what is known of an hour that begins at @hour, seconds since 1970. */
gboolean memory_table_add(Db *db, const char *uuid, gint64 hour, const MemoryUse *use,
                          GError **error);

/* Forgets all but the last MEMORY_DAYS, and one more, of hours in which there was something. */
gboolean memory_table_prune(Db *db, GError **error);

/*
 * What slices are expected to use, by the MEMORY_DAYS before the hour that begins at @before:
 * a{sat}, by UUID, as org.mdev_vgpu.Host1.Metering.SetExpected has it. To be freed.
 */
GVariant *memory_table_expect(Db *db, gint64 before, GError **error);

#endif
