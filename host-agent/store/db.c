/* SPDX-License-Identifier: MIT */
#include "host-agent/store/db.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <glib/gstdio.h>

#include "lib/bus.h"
#include "lib/database.h"

/* The tables of the database, as steps from each version to the next. */

/*
 * slice.state: the operation on it; "ready": none. request: of the call that made it, for all or
 * none.
 */
static const char first[] =
    "CREATE TABLE tenant ("
    " name TEXT PRIMARY KEY, vram INTEGER NOT NULL, compute INTEGER NOT NULL,"
    " vgpus INTEGER NOT NULL, models TEXT NOT NULL, users TEXT NOT NULL) STRICT;"

    "CREATE TABLE slice ("
    " uuid TEXT PRIMARY KEY, state TEXT NOT NULL, request TEXT NOT NULL, gpu TEXT NOT NULL,"
    " type TEXT NOT NULL, tenant TEXT NOT NULL, class TEXT NOT NULL, vram INTEGER NOT NULL,"
    " compute INTEGER NOT NULL, weight INTEGER NOT NULL, cap INTEGER NOT NULL,"
    " priority INTEGER NOT NULL, job TEXT NOT NULL, replica TEXT NOT NULL,"
    " defined INTEGER NOT NULL, autostart INTEGER NOT NULL) STRICT;"

    /* A mode switch of a GPU that is under way. phase: draining, switching. */
    "CREATE TABLE mode_switch ("
    " gpu TEXT PRIMARY KEY, origin TEXT NOT NULL, target TEXT NOT NULL, phase TEXT NOT NULL,"
    " partitions INTEGER NOT NULL, deadline INTEGER NOT NULL) STRICT;"

    /* GPUs that an operator drains. */
    "CREATE TABLE drain (gpu TEXT PRIMARY KEY) STRICT;"

    /* What was due last for each GPU, and was handled. due: seconds since 1970. */
    "CREATE TABLE schedule (gpu TEXT PRIMARY KEY, due INTEGER NOT NULL) STRICT;"

    /*
     * vGPUs that were stopped for another mode of their GPU, to be started when it is shared again.
     */
    "CREATE TABLE stopped (uuid TEXT PRIMARY KEY, gpu TEXT NOT NULL) STRICT;"

    /* A GPU's findings. held: stays until an operator clears it. */
    "CREATE TABLE health ("
    " gpu TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL, since INTEGER NOT NULL,"
    " held INTEGER NOT NULL, PRIMARY KEY (gpu, kind)) STRICT;"

    /* Errors that an operator has acknowledged: counters of the kernel in the boot of that id. */
    "CREATE TABLE health_cleared ("
    " gpu TEXT PRIMARY KEY, boot TEXT NOT NULL, aer_fatal INTEGER NOT NULL,"
    " ecc INTEGER NOT NULL) STRICT;"

    /*
     * Where a best-effort slice was stopped because memory was short, and until when none is placed
     * again.
     */
    "CREATE TABLE eviction ("
    " gpu TEXT NOT NULL, tenant TEXT NOT NULL, until INTEGER NOT NULL,"
    " PRIMARY KEY (gpu, tenant)) STRICT;"

    /* A vGPU's promises and usage in an hour. hour: seconds since 1970, the hour's start. */
    "CREATE TABLE usage ("
    " hour INTEGER NOT NULL, uuid TEXT NOT NULL, tenant TEXT NOT NULL, gpu TEXT NOT NULL,"
    " type TEXT NOT NULL, seconds INTEGER NOT NULL, busy_seconds INTEGER NOT NULL,"
    " vram INTEGER NOT NULL, compute INTEGER NOT NULL, peak_vram INTEGER NOT NULL,"
    " gpu_ns INTEGER NOT NULL, requests INTEGER NOT NULL,"
    " PRIMARY KEY (hour, uuid, tenant)) STRICT;"
    "CREATE INDEX usage_tenant ON usage (tenant, hour);";

/* Bytes of host memory beyond the VRAM. */
static const char oversubscription[] =
    "ALTER TABLE slice ADD COLUMN oversubscribe INTEGER NOT NULL DEFAULT 0;";

/* The libvirt domain that it is made for and removed with; "": none. */
static const char domains[] = "ALTER TABLE slice ADD COLUMN domain TEXT NOT NULL DEFAULT '';";

/*
 * Containers' slices, and which container uses which. started: when its first process began, in
 * ticks since boot. With pid, it identifies the process even if another gets the same number later.
 */
static const char containers[] =
    "ALTER TABLE slice ADD COLUMN door TEXT NOT NULL DEFAULT 'vm';"
    "ALTER TABLE slice ADD COLUMN name TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE slice ADD COLUMN ephemeral INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE claim ("
    " uuid TEXT PRIMARY KEY, container TEXT NOT NULL, boot TEXT NOT NULL, pid INTEGER NOT NULL,"
    " started INTEGER NOT NULL) STRICT;";

/* Number of displays; -1: not known, for slices that were stored before this version. */
static const char displays[] = "ALTER TABLE slice ADD COLUMN display INTEGER NOT NULL DEFAULT -1;";

/* Which of the GPU's engines it may use, by name. */
static const char engines[] = "ALTER TABLE slice ADD COLUMN engines TEXT NOT NULL DEFAULT 'all';";

/*
 * The journal of operations (tables.h) records running operations, and slices no longer
 * do. Interrupted ones are undone or finished as before: kinds "create", "change", "remove" and
 * "switch".
 */
static const char operations[] =
    "CREATE TABLE operation ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, objects TEXT NOT NULL,"
    " data TEXT NOT NULL, caller TEXT NOT NULL, begun INTEGER NOT NULL, step TEXT NOT NULL,"
    " item INTEGER NOT NULL, undoing INTEGER NOT NULL) STRICT;"
    "INSERT INTO operation (kind, objects, data, caller, begun, step, item, undoing)"
    " SELECT CASE state WHEN 'creating' THEN 'create' WHEN 'changing' THEN 'change'"
    "  ELSE 'remove' END, uuid, '', '', 0, '', 0, state = 'creating'"
    " FROM slice WHERE state <> 'ready' ORDER BY uuid;"
    "ALTER TABLE slice DROP COLUMN state;"
    "INSERT INTO operation (kind, objects, data, caller, begun, step, item, undoing)"
    " SELECT 'switch', gpu, printf('{''origin'': <''%s''>, ''target'': <''%s''>,"
    "  ''partitions'': <uint32 %d>}', origin, target, partitions), '', 0,"
    "  CASE phase WHEN 'switching' THEN 'reconcile' ELSE 'wait' END, 0, 0"
    " FROM mode_switch ORDER BY gpu;"
    "DROP TABLE mode_switch;";

/*
 * Of a program that vgpuctl has started: its user, -1 for a container; and its systemd scope, whose
 * processes use the slice, too.
 */
static const char programs[] = "ALTER TABLE claim ADD COLUMN user INTEGER NOT NULL DEFAULT -1;"
                               "ALTER TABLE claim ADD COLUMN cgroup TEXT NOT NULL DEFAULT '';";

/*
 * What an engine has made for its jobs (slice.h), and what these have used: a row for each of their
 * slices, kept for some time after the slice. last_…: the arbiter's counters as they were last
 * read; they begin again at 0 with the arbiter. ended: seconds since 1970; 0: the slice exists.
 * pool: of GPUs whose pool was set by command.
 */
static const char owners[] =
    "ALTER TABLE slice ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE slice ADD COLUMN part TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE slice ADD COLUMN pool TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE slice ADD COLUMN asked TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE slice ADD COLUMN uid INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE slice ADD COLUMN since INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE owner_use ("
    " uuid TEXT PRIMARY KEY, owner TEXT NOT NULL, gpu_ns INTEGER NOT NULL,"
    " waited_ns INTEGER NOT NULL, throttled_ns INTEGER NOT NULL, peak_vram INTEGER NOT NULL,"
    " last_gpu_ns INTEGER NOT NULL, last_waited_ns INTEGER NOT NULL,"
    " last_throttled_ns INTEGER NOT NULL, ended INTEGER NOT NULL) STRICT;"
    "CREATE TABLE pool (gpu TEXT PRIMARY KEY, pool TEXT NOT NULL) STRICT;";

/* Several containers may use an owner's slice. */
static const char sharing[] =
    "ALTER TABLE claim RENAME TO one_claim;"
    "CREATE TABLE claim ("
    " uuid TEXT NOT NULL, container TEXT NOT NULL, boot TEXT NOT NULL, pid INTEGER NOT NULL,"
    " started INTEGER NOT NULL, user INTEGER NOT NULL, cgroup TEXT NOT NULL,"
    " PRIMARY KEY (uuid, container)) STRICT;"
    "INSERT INTO claim SELECT uuid, container, boot, pid, started, user, cgroup FROM one_claim;"
    "DROP TABLE one_claim;";

/* Of an owner's slice, in microjoules; -1: its GPU has no counter. */
static const char energies[] =
    "ALTER TABLE owner_use ADD COLUMN energy_uj INTEGER NOT NULL DEFAULT -1;";

/* Who has claimed it for a container: a member of the slice's tenant; -1: an administrator. */
static const char members[] = "ALTER TABLE claim ADD COLUMN member INTEGER NOT NULL DEFAULT -1;";

/* Slices that are suspended. boot: the id of the boot in which their programs were. */
static const char suspensions[] =
    "CREATE TABLE suspension (uuid TEXT PRIMARY KEY, boot TEXT NOT NULL) STRICT;";

/*
 * A vGPU's promises and usage in a month, in place of those in each of its hours: reports are by
 * the month, and 1,024 vGPUs had nine million rows a year. month: seconds since 1970, its start in
 * UTC. vram, peak_vram: the most. vram_seconds: bytes times seconds; compute_seconds: per cent
 * times seconds.
 */
#define USAGE_MONTH                                                                                \
    "CREATE TABLE usage_month ("                                                                   \
    " month INTEGER NOT NULL, uuid TEXT NOT NULL, tenant TEXT NOT NULL, gpu TEXT NOT NULL,"        \
    " type TEXT NOT NULL, seconds INTEGER NOT NULL, busy_seconds INTEGER NOT NULL,"                \
    " vram INTEGER NOT NULL, peak_vram INTEGER NOT NULL, vram_seconds REAL NOT NULL,"              \
    " compute_seconds REAL NOT NULL, gpu_ns INTEGER NOT NULL, requests INTEGER NOT NULL,"          \
    " PRIMARY KEY (month, uuid, tenant, gpu, type)) STRICT;"                                       \
    "CREATE INDEX usage_month_tenant ON usage_month (tenant, month);"

static const char months[] = USAGE_MONTH
    /* Not by GROUP BY, which sorts all hours before it adds them up, and takes twice the time. */
    "INSERT INTO usage_month"
    " SELECT CAST(strftime('%s', hour, 'unixepoch', 'start of month') AS INTEGER), uuid, tenant,"
    "  gpu, type, seconds, busy_seconds, vram, peak_vram, CAST(seconds AS REAL) * vram,"
    "  CAST(seconds AS REAL) * compute, gpu_ns, requests FROM usage WHERE TRUE"
    " ON CONFLICT (month, uuid, tenant, gpu, type) DO UPDATE SET"
    "  seconds = seconds + excluded.seconds,"
    "  busy_seconds = busy_seconds + excluded.busy_seconds, vram = max(vram, excluded.vram),"
    "  peak_vram = max(peak_vram, excluded.peak_vram),"
    "  vram_seconds = vram_seconds + excluded.vram_seconds,"
    "  compute_seconds = compute_seconds + excluded.compute_seconds,"
    "  gpu_ns = gpu_ns + excluded.gpu_ns, requests = requests + excluded.requests;"
    "DROP TABLE usage;";

/*
 * Tenants' slices from the time when names were unique on the host, and CDI had them without their
 * tenant.
 */
static const char old_names[] =
    "CREATE TABLE old_name (name TEXT PRIMARY KEY, uuid TEXT NOT NULL) STRICT;"
    "INSERT INTO old_name SELECT name, max(uuid) FROM slice WHERE name <> '' AND tenant <> ''"
    " GROUP BY name HAVING count(*) = 1;";

/* Bytes of the VRAM that are always on the GPU; 0: all. */
static const char residents[] = "ALTER TABLE slice ADD COLUMN resident INTEGER NOT NULL DEFAULT 0;";

/* Bytes of the host's memory for a tenant's displaced memory; 0: no limit. */
static const char tenants_displaced[] =
    "ALTER TABLE tenant ADD COLUMN displaced INTEGER NOT NULL DEFAULT 0;";

/* Slices that are suspended because memory was short; bytes: that they had of the GPU. */
static const char ways_back[] =
    "CREATE TABLE way_back (uuid TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;";

const char *const schema_steps[] = {
    first,     oversubscription, domains,           containers, displays, engines,     operations,
    programs,  owners,           sharing,           energies,   members,  suspensions, months,
    old_names, residents,        tenants_displaced, ways_back,  NULL};
G_STATIC_ASSERT(G_N_ELEMENTS(schema_steps) == DATABASE_VERSION + 1);

/*
 * The meter's tables. owner_use: what slices that were made for an engine's jobs have used, as
 * above.
 */
static const char meter_first[] = USAGE_MONTH
    "CREATE TABLE owner_use ("
    " uuid TEXT PRIMARY KEY, owner TEXT NOT NULL, gpu_ns INTEGER NOT NULL,"
    " waited_ns INTEGER NOT NULL, throttled_ns INTEGER NOT NULL, peak_vram INTEGER NOT NULL,"
    " last_gpu_ns INTEGER NOT NULL, last_waited_ns INTEGER NOT NULL,"
    " last_throttled_ns INTEGER NOT NULL, ended INTEGER NOT NULL,"
    " energy_uj INTEGER NOT NULL DEFAULT -1) STRICT;"
    "INSERT INTO usage_month SELECT * FROM agent.usage_month;"
    "INSERT INTO owner_use SELECT * FROM agent.owner_use;";

/* How much of a GPU's memory slices used in each hour; steps: MemoryUse. */
static const char meter_memory[] =
    "CREATE TABLE memory_use ("
    " hour INTEGER NOT NULL, uuid TEXT NOT NULL, most INTEGER NOT NULL, steps BLOB NOT NULL,"
    " PRIMARY KEY (hour, uuid)) STRICT, WITHOUT ROWID;";

static const char *const meter_steps[] = {meter_first, meter_memory, NULL};
#define METER_VERSION 2
G_STATIC_ASSERT(G_N_ELEMENTS(meter_steps) == METER_VERSION + 1);

#define STATE_DIR       "var/lib/vgpu"
#define STATE_FILE      "state.db"
#define METER_FILE      "meter.db"
#define BUSY_TIMEOUT_MS 5000

/**
 * Schema - of one database
 * @owner: the program that it belongs to
 * @loss: what is lost without it
 * @source: the file that its first step reads as "agent"; NULL: none
 */
typedef struct {
    const char *file;
    const char *owner;
    const char *loss;
    const char *source;
    const char *const *steps;
    guint version;
} Schema;

static const Schema agent_schema = {
    STATE_FILE, "vgpud",      "existing vGPUs will be adopted again",
    NULL,       schema_steps, DATABASE_VERSION};
static const Schema meter_schema = {METER_FILE, "vgpu-meter", "reports begin anew",
                                    STATE_FILE, meter_steps,  METER_VERSION};

struct Db {
    const Schema *schema;
    sqlite3 *sqlite;
    char *path;
};

/* SQLite's own errors if it needs disk space and there is none. */
static gboolean is_full(const Db *db)
{
    int code = sqlite3_extended_errcode(db->sqlite);

    return code == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE ||
           sqlite3_system_errno(db->sqlite) == ENOSPC;
}

static gboolean is_damaged(const Db *db)
{
    int code = sqlite3_errcode(db->sqlite);

    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

static gboolean set_error(const Db *db, const char *what, GError **error)
{
    if (is_full(db))
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "cannot write %s: its file system is full; free some space, then try again",
                    db->path);
    else
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s: %s: %s", db->path, what,
                    sqlite3_errmsg(db->sqlite));
    return FALSE;
}

static gboolean exec_sql(Db *db, const char *sql, GError **error)
{
    if (sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK)
        return TRUE;
    return set_error(db, sql, error);
}

static void read_version(sqlite3_stmt *row, void *data)
{
    *(guint *)data = (guint)sqlite3_column_int(row, 0);
}

/* Before the first step to a newer version, for who goes back to the older vgpud. */
static gboolean keep_copy(Db *db, guint version, GError **error)
{
    g_autofree char *copy = g_strdup_printf("%s.v%u", db->path, version);
    g_autofree char *part = g_strconcat(copy, ".part", NULL);
    char *sql;
    gboolean done;

    /* There may be one of an earlier upgrade: it is older than what is in use now. */
    g_remove(part);
    sql = sqlite3_mprintf("VACUUM INTO %Q", part);
    done = exec_sql(db, sql, error);
    sqlite3_free(sql);
    return done && (g_rename(part, copy) == 0 || set_error(db, "its copy can't be renamed", error));
}

/* Not in a transaction. */
static gboolean attach_source(Db *db, HostRoot *root, GError **error)
{
    g_autofree char *path = root_path(root, STATE_DIR, db->schema->source, NULL);
    char *sql = sqlite3_mprintf("ATTACH %Q AS agent", path);
    gboolean done = exec_sql(db, sql, error);

    sqlite3_free(sql);
    return done;
}

static gboolean upgrade_tables(Db *db, HostRoot *root, GError **error)
{
    const Schema *schema = db->schema;
    guint version = 0;
    gboolean new, attached;

    if (!db_each(db, error, read_version, &version, "PRAGMA user_version", ""))
        return FALSE;
    if (version > schema->version) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "%s is of a newer %s (version %u, this one knows %u); install that one, or "
                    "put the copy that it has made when it was installed, %s.v%u or older, in the "
                    "file's place",
                    db->path, schema->owner, version, schema->version, db->path, schema->version);
        return FALSE;
    }
    if (version && version < schema->version && !keep_copy(db, version, error))
        return FALSE;
    new = !version;
    if (new && schema->source && !attach_source(db, root, error))
        return FALSE;
    /* IMMEDIATE would lock the source, too, which is only read: its owner must not wait. */
    attached = new && schema->source;
    for (; version < schema->version; version++) {
        g_autofree char *sql =
            g_strdup_printf("BEGIN%s; %s PRAGMA user_version = %u; COMMIT",
                            attached ? "" : " IMMEDIATE", schema->steps[version], version + 1);

        if (!exec_sql(db, sql, error))
            return FALSE;
    }
    return !attached || exec_sql(db, "DETACH agent", error);
}

static gboolean prepare_database(Db *db, HostRoot *root, GError **error)
{
    sqlite3_busy_timeout(db->sqlite, BUSY_TIMEOUT_MS);
    return exec_sql(db, "PRAGMA journal_mode = WAL", error) &&
           exec_sql(db, "PRAGMA synchronous = FULL", error) && upgrade_tables(db, root, error);
}

static Db *open_schema(HostRoot *root, const Schema *schema, GError **error)
{
    g_autoptr(Db) db = g_new0(Db, 1);
    g_autoptr(GError) cause = NULL;

    db->schema = schema;
    db->path = root_path(root, STATE_DIR, schema->file, NULL);
    if (!root_mkdir(root, STATE_DIR, 0700, &cause)) {
        g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_FAILED, cause->message);
        return NULL;
    }
    if (sqlite3_open(db->path, &db->sqlite) != SQLITE_OK) {
        set_error(db, "can't be opened", error);
        return NULL;
    }
    if (!prepare_database(db, root, error)) {
        /* A full disk, a lock, or rights that are missing have damaged nothing. */
        if (is_damaged(db))
            g_prefix_error(error,
                           "the database of %s is not usable (move it away to start with an empty "
                           "one; %s): ",
                           schema->owner, schema->loss);
        return NULL;
    }
    return g_steal_pointer(&db);
}

Db *db_open(HostRoot *root, GError **error)
{
    return open_schema(root, &agent_schema, error);
}

Db *db_open_meter(HostRoot *root, GError **error)
{
    return open_schema(root, &meter_schema, error);
}

Db *db_open_meter_reader(HostRoot *root, GError **error)
{
    g_autoptr(Db) db = g_new0(Db, 1);

    db->schema = &meter_schema;
    db->path = root_path(root, STATE_DIR, METER_FILE, NULL);
    if (sqlite3_open_v2(db->path, &db->sqlite, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        set_error(db, "can't be opened", error);
        return NULL;
    }
    sqlite3_busy_timeout(db->sqlite, BUSY_TIMEOUT_MS);
    return g_steal_pointer(&db);
}

void db_free(Db *db)
{
    sqlite3_close(db->sqlite);
    g_free(db->path);
    g_free(db);
}

static int bind_one(sqlite3_stmt *statement, int at, char type, va_list *values)
{
    switch (type) {
    case 's':
        return sqlite3_bind_text(statement, at, va_arg(*values, const char *), -1,
                                 SQLITE_TRANSIENT);
    case 't':
        return sqlite3_bind_int64(statement, at, (gint64)va_arg(*values, guint64));
    case 'x':
        return sqlite3_bind_int64(statement, at, va_arg(*values, gint64));
    case 'u':
        return sqlite3_bind_int64(statement, at, va_arg(*values, guint));
    case 'd':
        return sqlite3_bind_double(statement, at, va_arg(*values, double));
    default:
        return sqlite3_bind_int(statement, at, va_arg(*values, int));
    }
}

static int bind_all(sqlite3_stmt *statement, const char *types, va_list *values)
{
    int ret = SQLITE_OK;

    for (int i = 0; ret == SQLITE_OK && types[i]; i++)
        ret = bind_one(statement, i + 1, types[i], values);
    return ret;
}

/* @ret: of what was done with @statement so far; it is finished here. */
static gboolean step_all(Db *db, GError **error, DbRowFunc func, void *data, const char *sql,
                         sqlite3_stmt *statement, int ret)
{
    if (ret == SQLITE_OK)
        while ((ret = sqlite3_step(statement)) == SQLITE_ROW)
            if (func)
                func(statement, data);
    sqlite3_finalize(statement);
    return ret == SQLITE_DONE ? TRUE : set_error(db, sql, error);
}

static gboolean step_with(Db *db, GError **error, DbRowFunc func, void *data, const char *sql,
                          const char *types, va_list *values)
{
    sqlite3_stmt *statement = NULL;
    int ret = sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL);

    if (ret == SQLITE_OK)
        ret = bind_all(statement, types, values);
    return step_all(db, error, func, data, sql, statement, ret);
}

gboolean db_run_bound(Db *db, GError **error, const char *sql, DbBindFunc bind, const void *data)
{
    sqlite3_stmt *statement = NULL;
    int ret = sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL);

    if (ret == SQLITE_OK)
        ret = bind(statement, data);
    return step_all(db, error, NULL, NULL, sql, statement, ret);
}

gboolean db_run(Db *db, GError **error, const char *sql, const char *types, ...)
{
    va_list values;
    gboolean done;

    va_start(values, types);
    done = step_with(db, error, NULL, NULL, sql, types, &values);
    va_end(values);
    return done;
}

gboolean db_run_later(Db *db, GError **error, const char *sql, const char *types, ...)
{
    va_list values;
    gboolean done;

    if (!exec_sql(db, "PRAGMA synchronous = NORMAL", error))
        return FALSE;
    va_start(values, types);
    done = step_with(db, error, NULL, NULL, sql, types, &values);
    va_end(values);
    return exec_sql(db, "PRAGMA synchronous = FULL", done ? error : NULL) && done;
}

gboolean db_each(Db *db, GError **error, DbRowFunc func, void *data, const char *sql,
                 const char *types, ...)
{
    va_list values;
    gboolean done;

    va_start(values, types);
    done = step_with(db, error, func, data, sql, types, &values);
    va_end(values);
    return done;
}

static void read_number(sqlite3_stmt *row, void *data)
{
    *(gint64 *)data = sqlite3_column_int64(row, 0);
}

gint64 db_number(Db *db, const char *sql, const char *types, ...)
{
    g_autoptr(GError) error = NULL;
    gint64 number = 0;
    va_list values;

    va_start(values, types);
    if (!step_with(db, &error, read_number, &number, sql, types, &values))
        g_warning("%s", error->message);
    va_end(values);
    return number;
}

static void read_text(sqlite3_stmt *row, void *data)
{
    g_strv_builder_add(data, db_text(row, 0));
}

GStrv db_texts(Db *db, GError **error, const char *sql, const char *types, ...)
{
    g_autoptr(GStrvBuilder) texts = g_strv_builder_new();
    va_list values;
    gboolean done;

    va_start(values, types);
    done = step_with(db, error, read_text, texts, sql, types, &values);
    va_end(values);
    return done ? g_strv_builder_end(texts) : NULL;
}

GPtrArray *db_list(Db *db, GError **error, DbRowFunc func, GDestroyNotify free_item,
                   const char *sql, const char *types, ...)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(free_item);
    va_list values;
    gboolean done;

    va_start(values, types);
    done = step_with(db, error, func, items, sql, types, &values);
    va_end(values);
    return done ? g_steal_pointer(&items) : NULL;
}

gboolean db_begin(Db *db, GError **error)
{
    return exec_sql(db, "BEGIN IMMEDIATE", error);
}

gboolean db_commit(Db *db, GError **error)
{
    return exec_sql(db, "COMMIT", error);
}

void db_rollback(Db *db)
{
    exec_sql(db, "ROLLBACK", NULL);
}

const char *db_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text ? text : "";
}
