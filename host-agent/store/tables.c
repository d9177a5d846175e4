/* SPDX-License-Identifier: MIT */
#include "host-agent/store/tables.h"

#include "host-agent/model/slice_keys.h"
#include "host-agent/store/memory_table.h"

/* Slices in the database. */

/* "uuid, gpu, …", each with @before. To be freed. */
static char *stored_columns(const char *before)
{
    g_autoptr(GString) list = g_string_new(NULL);

    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].column)
            g_string_append_printf(list, "%s%s%s", list->len ? ", " : "", before,
                                   slice_keys[i].column);
    return g_string_free(g_steal_pointer(&list), FALSE);
}

static void read_slice(sqlite3_stmt *row, void *data)
{
    Slice *slice = slice_new("", "", "");
    int column = 0;

    slice->class = SLICE_BEST_EFFORT;
    for (guint i = 0; i < slice_keys_count; i++) {
        const SliceKey *key = &slice_keys[i];

        if (!key->column)
            continue;
        if (slice_key_is_text(key))
            slice_key_set_text(key, slice, db_text(row, column));
        else
            slice_key_set_number(key, slice, sqlite3_column_int64(row, column));
        column++;
    }
    slice->present = !slice_is_vgpu(slice);
    g_ptr_array_add(data, slice);
}

GPtrArray *slice_table_read(Db *db, GError **error)
{
    g_autofree char *columns = stored_columns("");
    g_autofree char *sql = g_strdup_printf("SELECT %s FROM slice ORDER BY uuid", columns);

    return db_list(db, error, read_slice, (GDestroyNotify)slice_free, sql, "");
}

static int bind_slice(sqlite3_stmt *statement, const void *data)
{
    const Slice *slice = data;
    int ret = SQLITE_OK, at = 1;

    for (guint i = 0; ret == SQLITE_OK && i < slice_keys_count; i++) {
        const SliceKey *key = &slice_keys[i];
        g_autofree char *text = slice_key_is_text(key) ? slice_key_text(key, slice) : NULL;

        if (!key->column)
            continue;
        ret = text ? sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT)
                   : sqlite3_bind_int64(statement, at, slice_key_number(key, slice));
        at++;
    }
    return ret;
}

gboolean slice_table_put(Db *db, const Slice *slice, GError **error)
{
    g_autofree char *columns = stored_columns("");
    g_autofree char *values = stored_columns(":");
    g_autofree char *sql =
        g_strdup_printf("INSERT OR REPLACE INTO slice (%s) VALUES (%s)", columns, values);

    return db_run_bound(db, error, sql, bind_slice, slice);
}

gboolean slice_table_remove(Db *db, const char *uuid, GError **error)
{
    return db_run(db, error, "DELETE FROM slice WHERE uuid = ?", "s", uuid);
}

static void read_two_texts(sqlite3_stmt *row, void *data)
{
    g_hash_table_insert(data, g_strdup(db_text(row, 0)), g_strdup(db_text(row, 1)));
}

GHashTable *suspension_table_read(Db *db, GError **error)
{
    g_autoptr(GHashTable) boots = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    if (!db_each(db, error, read_two_texts, boots, "SELECT uuid, boot FROM suspension", ""))
        return NULL;
    return g_steal_pointer(&boots);
}

GHashTable *old_name_table_read(Db *db, GError **error)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    if (!db_each(db, error, read_two_texts, names, "SELECT uuid, name FROM old_name", ""))
        return NULL;
    return g_steal_pointer(&names);
}

gboolean suspension_table_put(Db *db, const char *uuid, const char *boot, GError **error)
{
    return db_run(db, error, "INSERT OR REPLACE INTO suspension VALUES (?, ?)", "ss", uuid, boot);
}

gboolean suspension_table_remove(Db *db, const char *uuid, GError **error)
{
    return db_run(db, error, "DELETE FROM suspension WHERE uuid = ?", "s", uuid);
}

/**
 * WayBackReader
 */
typedef struct {
    WayBackFunc func;
    void *data;
} WayBackReader;

static void read_way_back(sqlite3_stmt *row, void *data)
{
    const WayBackReader *reader = data;

    reader->func(db_text(row, 0), (guint64)sqlite3_column_int64(row, 1), reader->data);
}

gboolean way_back_table_read(Db *db, WayBackFunc func, void *data, GError **error)
{
    WayBackReader reader = {func, data};

    return db_each(db, error, read_way_back, &reader,
                   "SELECT uuid, bytes FROM way_back ORDER BY rowid", "");
}

gboolean way_back_table_set(Db *db, const char *uuid, guint64 bytes, GError **error)
{
    if (!bytes)
        return db_run(db, error, "DELETE FROM way_back WHERE uuid = ?", "s", uuid);
    return db_run(db, error, "INSERT OR REPLACE INTO way_back VALUES (?, ?)", "st", uuid, bytes);
}

/* Tenants in the database. */

/* Separates the entries of a list: no name of a user or a model contains it. */
#define TENANT_SEPARATOR "\n"

static GStrv list_of(const char *text)
{
    return *text ? g_strsplit(text, TENANT_SEPARATOR, -1) : g_new0(char *, 1);
}

static void read_tenant(sqlite3_stmt *row, void *data)
{
    Tenant *tenant = g_new0(Tenant, 1);

    tenant->name = g_strdup(db_text(row, 0));
    tenant->vram = (guint64)sqlite3_column_int64(row, 1);
    tenant->compute = (guint)sqlite3_column_int(row, 2);
    tenant->vgpus = (guint)sqlite3_column_int(row, 3);
    tenant->models = list_of(db_text(row, 4));
    tenant->users = list_of(db_text(row, 5));
    tenant->displaced = (guint64)sqlite3_column_int64(row, 6);
    g_ptr_array_add(data, tenant);
}

GPtrArray *tenant_table_read(Db *db, GError **error)
{
    return db_list(db, error, read_tenant, (GDestroyNotify)tenant_free,
                   "SELECT name, vram, compute, vgpus, models, users, displaced FROM tenant"
                   " ORDER BY name",
                   "");
}

gboolean tenant_table_put(Db *db, const Tenant *tenant, GError **error)
{
    g_autofree char *models = g_strjoinv(TENANT_SEPARATOR, tenant->models);
    g_autofree char *users = g_strjoinv(TENANT_SEPARATOR, tenant->users);

    return db_run(db, error,
                  "INSERT OR REPLACE INTO tenant (name, vram, compute, vgpus, models, users,"
                  " displaced) VALUES (?, ?, ?, ?, ?, ?, ?)",
                  "stuusst", tenant->name, tenant->vram, tenant->compute, tenant->vgpus, models,
                  users, tenant->displaced);
}

gboolean tenant_table_remove(Db *db, const char *name, GError **error)
{
    return db_run(db, error, "DELETE FROM tenant WHERE name = ?", "s", name);
}

/* Which container or program uses which slice. */

void claim_free(Claim *claim)
{
    g_free(claim->uuid);
    g_free(claim->container);
    g_free(claim->cgroup);
    g_free(claim);
}

/* @claims: of Claim. @boot: as claim_table_read() has it. */
typedef struct {
    GPtrArray *claims;
    const char *boot;
} ClaimRead;

static void read_claim(sqlite3_stmt *row, void *data)
{
    const ClaimRead *read = data;
    const char *boot = db_text(row, 7);
    Claim *claim = g_new0(Claim, 1);

    claim->uuid = g_strdup(db_text(row, 0));
    claim->container = g_strdup(db_text(row, 1));
    claim->pid = (guint)sqlite3_column_int64(row, 2);
    claim->started = (guint64)sqlite3_column_int64(row, 3);
    claim->user = sqlite3_column_int64(row, 4);
    claim->member = sqlite3_column_int64(row, 5);
    claim->cgroup = g_strdup(db_text(row, 6));
    claim->past = *boot && *read->boot && !g_str_equal(boot, read->boot);
    g_ptr_array_add(read->claims, claim);
}

GPtrArray *claim_table_read(Db *db, const char *boot, GError **error)
{
    g_autoptr(GPtrArray) claims = g_ptr_array_new_with_free_func((GDestroyNotify)claim_free);
    ClaimRead read = {claims, boot};

    if (!db_each(db, error, read_claim, &read,
                 "SELECT uuid, container, pid, started, user, member, cgroup, boot FROM claim", ""))
        return NULL;
    return g_steal_pointer(&claims);
}

gboolean claim_table_put(Db *db, const char *boot, const Claim *claim, GError **error)
{
    return db_run(db, error,
                  "INSERT OR REPLACE INTO claim (uuid, container, boot, pid, started, user,"
                  " member, cgroup) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                  "sssutxxs", claim->uuid, claim->container, boot, claim->pid, claim->started,
                  claim->user, claim->member, claim->cgroup);
}

gboolean claim_table_remove(Db *db, const char *uuid, const char *container, GError **error)
{
    return db_run(db, error, "DELETE FROM claim WHERE uuid = ? AND container = ?", "ss", uuid,
                  container);
}

/* Usage in the database by the month, and its sum. */

static gboolean add_month(Db *db, const UsageRow *row, GError **error)
{
    return db_run(db, error,
                  "INSERT INTO usage_month (month, uuid, tenant, gpu, type, seconds, busy_seconds, "
                  "vram, peak_vram, vram_seconds, compute_seconds, gpu_ns, requests) VALUES "
                  "(CAST(strftime('%s', ?, 'unixepoch', 'start of month') AS INTEGER), "
                  "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT (month, uuid, tenant, gpu, type) DO UPDATE SET "
                  "seconds = seconds + excluded.seconds, "
                  "busy_seconds = busy_seconds + excluded.busy_seconds, "
                  "vram = max(vram, excluded.vram), "
                  "peak_vram = max(peak_vram, excluded.peak_vram), "
                  "vram_seconds = vram_seconds + excluded.vram_seconds, "
                  "compute_seconds = compute_seconds + excluded.compute_seconds, "
                  "gpu_ns = gpu_ns + excluded.gpu_ns, requests = requests + excluded.requests",
                  "xssssttttddtt", row->hour, row->uuid, row->tenant, row->gpu, row->type,
                  row->seconds, row->busy_seconds, row->vram, row->peak_vram,
                  (double)row->seconds * (double)row->vram,
                  (double)row->seconds * (double)row->compute, row->gpu_ns, row->requests);
}

static gboolean add_row(Db *db, const UsageRow *row, GError **error)
{
    return add_month(db, row, error) &&
           (!memory_use_is_known(&row->memory) ||
            memory_table_add(db, row->uuid, row->hour, &row->memory, error));
}

gboolean usage_table_add(Db *db, const GPtrArray *rows, GError **error)
{
    gboolean good = db_begin(db, error);

    if (!good)
        return FALSE;
    for (guint i = 0; good && i < rows->len; i++)
        good = add_row(db, g_ptr_array_index(rows, i), error);
    if (good && db_commit(db, error))
        return TRUE;
    db_rollback(db);
    return FALSE;
}

/*
 * No clock is asked, as it may be wrong, like before NTP has set it: that makes a month in which
 * little was used, and costs the oldest one.
 */
gboolean usage_table_prune(Db *db, GError **error)
{
    return db_run(db, error,
                  "DELETE FROM usage_month WHERE month NOT IN (SELECT DISTINCT month FROM "
                  "usage_month ORDER BY month DESC LIMIT ?)",
                  "u", USAGE_MONTHS);
}

static void take_row(sqlite3_stmt *column, void *data)
{
    ReportRow *row = g_new0(ReportRow, 1);

    row->uuid = g_strdup(db_text(column, 0));
    row->tenant = g_strdup(db_text(column, 1));
    row->gpu = g_strdup(db_text(column, 2));
    row->type = g_strdup(db_text(column, 3));
    row->seconds = (guint64)sqlite3_column_int64(column, 4);
    row->busy_seconds = (guint64)sqlite3_column_int64(column, 5);
    row->vram_seconds = sqlite3_column_double(column, 6);
    row->compute_seconds = sqlite3_column_double(column, 7);
    row->vram = (guint64)sqlite3_column_int64(column, 8);
    row->peak_vram = (guint64)sqlite3_column_int64(column, 9);
    row->gpu_ns = (guint64)sqlite3_column_int64(column, 10);
    g_ptr_array_add(data, row);
}

GPtrArray *usage_table_sum(Db *db, const char *tenant, gint64 begin, gint64 end, GError **error)
{
    /* A condition "? = '' OR" would keep SQLite from the tenant's index. */
    g_autofree char *sql = g_strdup_printf(
        "SELECT uuid, tenant, gpu, type, sum(seconds), sum(busy_seconds), total(vram_seconds), "
        "total(compute_seconds), max(vram), max(peak_vram), sum(gpu_ns) FROM usage_month "
        "WHERE month >= ? AND month < ? %s"
        "GROUP BY uuid, tenant, gpu, type ORDER BY tenant, gpu, uuid",
        *tenant ? "AND tenant = ? " : "");

    return db_list(db, error, take_row, report_row_free, sql, *tenant ? "xxs" : "xx", begin, end,
                   tenant);
}

/* What is stored for each GPU besides its mode. */

gboolean gpu_table_add_finding(Db *db, const char *gpu, HealthKind kind, const char *reason,
                               gint64 since, GError **error)
{
    return db_run(db, error, "INSERT OR REPLACE INTO health VALUES (?, ?, ?, ?, ?)", "sssxb", gpu,
                  health_kind_name(kind), reason, since, health_kind_is_held(kind));
}

gboolean gpu_table_end_finding(Db *db, const char *gpu, HealthKind kind, GError **error)
{
    return db_run(db, error, "DELETE FROM health WHERE gpu = ? AND kind = ?", "ss", gpu,
                  health_kind_name(kind));
}

gboolean gpu_table_clear(Db *db, const char *gpu, const char *boot, guint64 aer_fatal, guint64 ecc,
                         GError **error)
{
    return db_run(db, error, "DELETE FROM health WHERE gpu = ?", "s", gpu) &&
           db_run(db, error, "INSERT OR REPLACE INTO health_cleared VALUES (?, ?, ?, ?)", "sstt",
                  gpu, boot, aer_fatal, ecc);
}

typedef struct {
    GpuFindingFunc finding;
    GpuClearedFunc cleared;
    void *data;
} Load;

static void load_finding(sqlite3_stmt *row, void *data)
{
    const Load *load = data;
    HealthKind kind;

    if (health_kind_parse(db_text(row, 1), &kind))
        load->finding(db_text(row, 0), kind, db_text(row, 2), load->data);
}

static void load_cleared(sqlite3_stmt *row, void *data)
{
    const Load *load = data;

    load->cleared(db_text(row, 0), (guint64)sqlite3_column_int64(row, 1),
                  (guint64)sqlite3_column_int64(row, 2), load->data);
}

gboolean gpu_table_load(Db *db, const char *boot, GpuFindingFunc finding, GpuClearedFunc cleared,
                        void *data, GError **error)
{
    Load load = {finding, cleared, data};

    return db_run(db, error, "DELETE FROM health WHERE NOT held", "") &&
           db_each(db, error, load_finding, &load, "SELECT gpu, kind, reason FROM health", "") &&
           db_each(db, error, load_cleared, &load,
                   "SELECT gpu, aer_fatal, ecc FROM health_cleared WHERE boot = ?", "s", boot);
}

gboolean gpu_table_evict(Db *db, const char *gpu, const char *tenant, gint64 now, GError **error)
{
    return db_run(db, error, "DELETE FROM eviction WHERE until <= ? OR until > ?", "xx", now,
                  now + EVICTED_S) &&
           db_run(db, error, "INSERT OR REPLACE INTO eviction VALUES (?, ?, ?)", "ssx", gpu, tenant,
                  now + EVICTED_S);
}

gboolean gpu_table_is_evicted(Db *db, const char *gpu, const char *tenant, gint64 now)
{
    return db_number(db,
                     "SELECT 1 FROM eviction WHERE gpu = ? AND tenant = ? AND until > ? AND "
                     "until <= ?",
                     "ssxx", gpu, tenant, now, now + EVICTED_S) != 0;
}

gint64 gpu_table_due(Db *db, const char *gpu)
{
    return db_number(db, "SELECT due FROM schedule WHERE gpu = ?", "s", gpu);
}

gboolean gpu_table_set_due(Db *db, const char *gpu, gint64 due, GError **error)
{
    return db_run(db, error, "INSERT OR REPLACE INTO schedule VALUES (?, ?)", "sx", gpu, due);
}

/* What outlives a switch of a GPU's mode. */

gboolean journal_add_stopped(Db *db, const char *gpu, const char *const *uuids, GError **error)
{
    for (guint i = 0; uuids[i]; i++)
        if (!db_run(db, error, "INSERT OR REPLACE INTO stopped VALUES (?, ?)", "ss", uuids[i], gpu))
            return FALSE;
    return TRUE;
}

/* None if they cannot be read. */
static GStrv none_or_log(GStrv texts, const GError *error)
{
    if (!texts)
        g_warning("%s", error->message);
    return texts ? texts : g_new0(char *, 1);
}

GStrv journal_stopped(Db *db, const char *gpu)
{
    g_autoptr(GError) error = NULL;
    GStrv uuids =
        db_texts(db, &error, "SELECT uuid FROM stopped WHERE gpu = ? ORDER BY uuid", "s", gpu);

    return none_or_log(uuids, error);
}

void journal_forget_stopped(Db *db, const char *uuid)
{
    g_autoptr(GError) error = NULL;

    if (!db_run(db, &error, "DELETE FROM stopped WHERE uuid = ?", "s", uuid))
        g_warning("%s", error->message);
}

/* In the column ephemeral, of a slice that is to be removed. */
#define UNRETURNED "2"

gboolean slice_table_set_unreturned(Db *db, const char *uuid, GError **error)
{
    return db_run(db, error, "UPDATE slice SET ephemeral = " UNRETURNED " WHERE uuid = ?", "s",
                  uuid);
}

GStrv slice_table_unreturned(Db *db)
{
    g_autoptr(GError) error = NULL;
    GStrv uuids = db_texts(db, &error, "SELECT uuid FROM slice WHERE ephemeral = " UNRETURNED, "");

    return none_or_log(uuids, error);
}

gboolean journal_drained(Db *db, const char *gpu)
{
    return db_number(db, "SELECT 1 FROM drain WHERE gpu = ?", "s", gpu) != 0;
}

gboolean journal_set_drained(Db *db, const char *gpu, gboolean drained, GError **error)
{
    return db_run(db, error,
                  drained ? "INSERT OR REPLACE INTO drain VALUES (?)"
                          : "DELETE FROM drain WHERE gpu = ?",
                  "s", gpu);
}

/* The journal of operations and of their progress. */

/* No object's name has a blank. */
#define OPERATION_SEPARATOR " "

void operation_row_free(OperationRow *row)
{
    g_free(row->kind);
    g_strfreev(row->objects);
    g_free(row->data);
    g_free(row->caller);
    g_free(row->step);
    g_free(row);
}

static void read_row(sqlite3_stmt *found, void *data)
{
    OperationRow *row = g_new0(OperationRow, 1);

    row->id = (guint64)sqlite3_column_int64(found, 0);
    row->kind = g_strdup(db_text(found, 1));
    row->objects = g_strsplit(db_text(found, 2), OPERATION_SEPARATOR, -1);
    row->data = g_strdup(db_text(found, 3));
    row->caller = g_strdup(db_text(found, 4));
    row->begun = sqlite3_column_int64(found, 5);
    row->step = g_strdup(db_text(found, 6));
    row->item = (guint)sqlite3_column_int64(found, 7);
    row->undoing = sqlite3_column_int(found, 8);
    g_ptr_array_add(data, row);
}

GPtrArray *operation_table_read(Db *db, GError **error)
{
    return db_list(db, error, read_row, (GDestroyNotify)operation_row_free,
                   "SELECT id, kind, objects, data, caller, begun, step, item, undoing"
                   " FROM operation ORDER BY id",
                   "");
}

static void read_id(sqlite3_stmt *found, void *id)
{
    *(guint64 *)id = (guint64)sqlite3_column_int64(found, 0);
}

gboolean operation_table_begin(Db *db, OperationRow *row, GError **error)
{
    g_autofree char *objects = g_strjoinv(OPERATION_SEPARATOR, row->objects);

    return db_each(db, error, read_id, &row->id,
                   "INSERT INTO operation (kind, objects, data, caller, begun, step, item, undoing)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                   "ssssxsub", row->kind, objects, row->data, row->caller, row->begun, row->step,
                   row->item, row->undoing);
}

gboolean operation_table_mark(Db *db, const OperationRow *row, GError **error)
{
    return db_run_later(db, error,
                        "UPDATE operation SET step = ?, item = ?, undoing = ? WHERE id = ?", "subt",
                        row->step, row->item, row->undoing, row->id);
}

gboolean operation_table_end(Db *db, guint64 id, GError **error)
{
    return db_run(db, error, "DELETE FROM operation WHERE id = ?", "t", id);
}
