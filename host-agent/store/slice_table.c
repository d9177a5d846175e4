/* SPDX-License-Identifier: MIT */
#include "host-agent/store/slice_table.h"

#include "host-agent/model/slice.h"

static void free_slice(void *slice)
{
    slice_free(slice);
}

static void read_slice(sqlite3_stmt *row, void *data)
{
    Slice *slice = slice_new(db_text(row, 0), db_text(row, 2), db_text(row, 3));

    slice_set_text(&slice->request, db_text(row, 1));
    slice_set_text(&slice->tenant, db_text(row, 4));
    if (!slice_class_parse(db_text(row, 5), &slice->class))
        slice->class = SLICE_BEST_EFFORT;
    slice->vram = (guint64)sqlite3_column_int64(row, 6);
    slice->compute = (guint)sqlite3_column_int(row, 7);
    slice->weight = (guint)sqlite3_column_int(row, 8);
    slice->cap = (guint)sqlite3_column_int(row, 9);
    slice->priority = (guint)sqlite3_column_int(row, 10);
    slice_set_text(&slice->job, db_text(row, 11));
    slice_set_text(&slice->replica, db_text(row, 12));
    slice->defined = sqlite3_column_int(row, 13);
    slice->autostart = sqlite3_column_int(row, 14);
    slice->oversubscribe = (guint64)sqlite3_column_int64(row, 15);
    slice_set_text(&slice->domain, db_text(row, 16));
    slice_transport_parse(db_text(row, 17), &slice->transport);
    slice_set_text(&slice->name, db_text(row, 18));
    slice->ephemeral = sqlite3_column_int(row, 19);
    slice->display = sqlite3_column_int(row, 20);
    engines_parse(db_text(row, 21), &slice->engines, NULL);
    slice->present = !slice_is_vgpu(slice);
    g_ptr_array_add(data, slice);
}

GPtrArray *slice_table_read(Db *db, GError **error)
{
    g_autoptr(GPtrArray) slices = g_ptr_array_new_with_free_func(free_slice);

    if (!db_each(db, error, read_slice, slices,
                 "SELECT uuid, request, gpu, type, tenant, class, vram, compute, weight,"
                 " cap, priority, job, replica, defined, autostart, oversubscribe, domain,"
                 " door, name, ephemeral, display, engines FROM slice ORDER BY uuid",
                 ""))
        return NULL;
    return g_steal_pointer(&slices);
}

gboolean slice_table_put(Db *db, const Slice *slice, GError **error)
{
    g_autofree char *engines = engines_format(slice->engines);

    return db_run(db, error,
                  "INSERT OR REPLACE INTO slice (uuid, request, gpu, type, tenant, class,"
                  " vram, compute, weight, cap, priority, job, replica, defined, autostart,"
                  " oversubscribe, domain, door, name, ephemeral, display, engines)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  "sssssstuuuussbbtsssbis", slice->uuid, slice->request, slice->gpu, slice->type,
                  slice->tenant, slice_class_name(slice->class), slice->vram, slice->compute,
                  slice->weight, slice->cap, slice->priority, slice->job, slice->replica,
                  slice->defined, slice->autostart, slice->oversubscribe, slice->domain,
                  slice_transport_name(slice->transport), slice->name, slice->ephemeral,
                  slice->display, engines);
}

gboolean slice_table_remove(Db *db, const char *uuid, GError **error)
{
    return db_run(db, error, "DELETE FROM slice WHERE uuid = ?", "s", uuid);
}
