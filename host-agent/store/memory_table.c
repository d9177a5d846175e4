/* SPDX-License-Identifier: MIT */
#include "host-agent/store/memory_table.h"

#include <string.h>

#define HOUR_S 3600
#define DAY_S  (MEMORY_HOURS_OF_DAY * HOUR_S)

/* In the order of MemoryUse: of the machine, as the database is. */
static void read_use(sqlite3_stmt *row, int column, MemoryUse *use)
{
    gsize size = (gsize)sqlite3_column_bytes(row, column + 1);

    *use = (MemoryUse){.most = (guint64)sqlite3_column_int64(row, column)};
    if (size == sizeof(use->seconds))
        memcpy(use->seconds, sqlite3_column_blob(row, column + 1), size);
}

/**
 * Entry - a row
 */
typedef struct {
    const char *uuid;
    gint64 hour;
    MemoryUse use;
} Entry;

static int bind_entry(sqlite3_stmt *statement, const void *data)
{
    const Entry *entry = data;
    int failed = sqlite3_bind_int64(statement, 1, entry->hour);

    failed = failed ? failed : sqlite3_bind_text(statement, 2, entry->uuid, -1, SQLITE_STATIC);
    failed = failed ? failed : sqlite3_bind_int64(statement, 3, (sqlite3_int64)entry->use.most);
    return failed ? failed
                  : sqlite3_bind_blob(statement, 4, entry->use.seconds, sizeof(entry->use.seconds),
                                      SQLITE_STATIC);
}

static void join_row(sqlite3_stmt *row, void *data)
{
    Entry *entry = data;
    MemoryUse before;

    read_use(row, 0, &before);
    memory_use_join(&entry->use, &before);
}

gboolean memory_table_add(Db *db, const char *uuid, gint64 hour, const MemoryUse *use,
                          GError **error)
{
    Entry entry = {uuid, hour, *use};

    return db_each(db, error, join_row, &entry,
                   "SELECT most, steps FROM memory_use WHERE hour = ? AND uuid = ?", "xs", hour,
                   uuid) &&
           db_run_bound(db, error, "INSERT OR REPLACE INTO memory_use VALUES (?, ?, ?, ?)",
                        bind_entry, &entry);
}

/* No clock is asked, as usage_table_prune() says. */
gboolean memory_table_prune(Db *db, GError **error)
{
    return db_run(db, error,
                  "DELETE FROM memory_use WHERE hour NOT IN (SELECT DISTINCT hour FROM memory_use "
                  "ORDER BY hour DESC LIMIT ?)",
                  "u", (MEMORY_DAYS + 1) * MEMORY_HOURS_OF_DAY);
}

/**
 * Days - of a slice, by the hour of the day
 */
typedef struct {
    MemoryUse hours[MEMORY_HOURS_OF_DAY];
} Days;

static void add_hour(sqlite3_stmt *row, void *data)
{
    GHashTable *slices = data;
    const char *uuid = db_text(row, 0);
    gint64 hour = sqlite3_column_int64(row, 1) / HOUR_S % MEMORY_HOURS_OF_DAY;
    Days *days = g_hash_table_lookup(slices, uuid);
    MemoryUse use;

    if (!days) {
        days = g_new0(Days, 1);
        g_hash_table_insert(slices, g_strdup(uuid), days);
    }
    read_use(row, 2, &use);
    memory_use_join(&days->hours[hour], &use);
}

/* at, floating */
static GVariant *expect_hours(const Days *days)
{
    guint64 bytes[MEMORY_HOURS_OF_DAY] = {0};

    for (guint i = 0; i < MEMORY_HOURS_OF_DAY; i++)
        if (memory_use_is_known(&days->hours[i]))
            bytes[i] = memory_use_expect(&days->hours[i]);
    return g_variant_new_fixed_array(G_VARIANT_TYPE_UINT64, bytes, MEMORY_HOURS_OF_DAY,
                                     sizeof(*bytes));
}

GVariant *memory_table_expect(Db *db, gint64 before, GError **error)
{
    g_autoptr(GHashTable) slices = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GVariantBuilder list;
    GHashTableIter iter;
    void *uuid, *days;

    if (!db_each(db, error, add_hour, slices,
                 "SELECT uuid, hour, most, steps FROM memory_use WHERE hour >= ? AND hour < ?",
                 "xx", before - MEMORY_DAYS * DAY_S, before))
        return NULL;
    g_variant_builder_init(&list, G_VARIANT_TYPE("a{sat}"));
    g_hash_table_iter_init(&iter, slices);
    while (g_hash_table_iter_next(&iter, &uuid, &days))
        g_variant_builder_add(&list, "{s@at}", uuid, expect_hours(days));
    return g_variant_ref_sink(g_variant_builder_end(&list));
}
