/* SPDX-License-Identifier: MIT */
/*
 * Slices as the database keeps them. Whether one is present, defined or started at boot is the
 * kernel's and mdevctl's to say; what is kept of that is what it was last.
 */
#ifndef STORE_SLICE_TABLE_H
#define STORE_SLICE_TABLE_H

#include "host-agent/model/slice.h"
#include "host-agent/store/db.h"

/* All of them, of Slice; NULL with @error. */
GPtrArray *slice_table_read(Db *db, GError **error);

/* Writes a slice, new or known. */
gboolean slice_table_put(Db *db, const Slice *slice, GError **error);

gboolean slice_table_remove(Db *db, const char *uuid, GError **error);

#endif
