/* SPDX-License-Identifier: MIT */
/*
 * vgpuctl database backup, restore: vgpud's database, for root. A backup is taken while vgpud
 * works; for a restore it must not run.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include "host-agent/vgpuctl/command.h"

#define DATABASE "/var/lib/vgpu/state.db"
/* vgpud holds it for as long as it runs. */
#define LOCK "/run/vgpu/vgpud.lock"
/* What is copied at once: all of it. */
#define ALL_PAGES (-1)

typedef sqlite3 Sqlite;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Sqlite, sqlite3_close)

static gboolean set_error(const char *doing, const char *path, const char *why, GError **error)
{
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "cannot %s %s: %s", doing, path, why);
    return FALSE;
}

static Sqlite *open_database(const char *path, int flags, GError **error)
{
    g_autoptr(Sqlite) sqlite = NULL;

    if (sqlite3_open_v2(path, &sqlite, flags, NULL) == SQLITE_OK)
        return g_steal_pointer(&sqlite);
    set_error("open", path, sqlite3_errmsg(sqlite), error);
    return NULL;
}

static int take_text(void *text, int columns, char **values, char **names)
{
    (void)columns, (void)names;
    g_free(*(char **)text);
    *(char **)text = g_strdup(values[0]);
    return 0;
}

/* It is whole, and vgpud's: SQLite has written all of it, and its version is one of ours. */
static gboolean check(Sqlite *sqlite, const char *path, GError **error)
{
    g_autofree char *verdict = NULL;
    g_autofree char *tenants = NULL;

    if (sqlite3_exec(sqlite, "PRAGMA integrity_check(1)", take_text, &verdict, NULL) != SQLITE_OK ||
        g_strcmp0(verdict, "ok") != 0)
        return set_error("use", path, verdict ? verdict : sqlite3_errmsg(sqlite), error);
    sqlite3_exec(sqlite, "SELECT count(*) FROM sqlite_master WHERE name IN ('tenant', 'slice')",
                 take_text, &tenants, NULL);
    if (g_strcmp0(tenants, "2") == 0)
        return TRUE;
    return set_error("use", path, "it is not a database of vgpud", error);
}

static gboolean copy(Sqlite *from, const char *path, GError **error)
{
    g_autoptr(Sqlite) to = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, error);
    sqlite3_backup *backup = to ? sqlite3_backup_init(to, "main", from, "main") : NULL;

    if (!to)
        return FALSE;
    if (backup)
        sqlite3_backup_step(backup, ALL_PAGES);
    /* One file, without a log beside it. */
    if (backup && sqlite3_backup_finish(backup) == SQLITE_OK &&
        sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) == SQLITE_OK)
        return TRUE;
    return set_error("write", path, sqlite3_errmsg(to), error);
}

/* Copies the database @from to the file @part, which only root may read. */
static gboolean copy_to(const char *from, const char *part, GError **error)
{
    g_autoptr(Sqlite) sqlite = open_database(from, SQLITE_OPEN_READWRITE, error);

    if (!sqlite || !check(sqlite, from, error))
        return FALSE;
    g_unlink(part);
    if (copy(sqlite, part, error) &&
        (g_chmod(part, 0600) == 0 || set_error("write", part, g_strerror(errno), error)))
        return TRUE;
    g_unlink(part);
    return FALSE;
}

/* @part becomes @to at once. */
static gboolean put(const char *part, const char *to, GError **error)
{
    if (g_rename(part, to) == 0)
        return TRUE;
    set_error("write", to, g_strerror(errno), error);
    g_unlink(part);
    return FALSE;
}

gboolean database_backup_command(Client *client, const Options *options, char **args,
                                 GError **error)
{
    g_autofree char *path = root_path(options->root, DATABASE, NULL);
    g_autofree char *part = g_strconcat(args[0], ".part", NULL);

    (void)client;
    if (!copy_to(path, part, error) || !put(part, args[0], error))
        return FALSE;
    output_line(options, "wrote %s", args[0]);
    return TRUE;
}

/* -1 with @error: vgpud runs. */
static int lock_out_vgpud(HostRoot *root, GError **error)
{
    g_autofree char *path = root_path(root, LOCK, NULL);
    g_autofree char *dir = g_path_get_dirname(LOCK);
    int lock;

    root_mkdir(root, dir, 0755, NULL);
    lock = root_open(root, LOCK, O_RDWR | O_CREAT, 0600);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        return lock;
    if (lock >= 0 && errno == EWOULDBLOCK)
        g_set_error(
            error, VGPUCTL_ERROR, VGPUCTL_IN_USE,
            "cannot restore the database while vgpud runs; \"systemctl stop vgpud\", restore, then "
            "\"systemctl start vgpud\"");
    else
        set_error("lock", path, g_strerror(errno), error);
    if (lock >= 0)
        close(lock);
    return -1;
}

gboolean database_restore_command(Client *client, const Options *options, char **args,
                                  GError **error)
{
    g_autofree char *path = root_path(options->root, DATABASE, NULL);
    g_autofree char *part = g_strconcat(path, ".part", NULL);
    g_autofree char *log = g_strconcat(path, "-wal", NULL);
    g_autofree char *index = g_strconcat(path, "-shm", NULL);
    int lock = lock_out_vgpud(options->root, error);
    gboolean done;

    (void)client;
    if (lock < 0)
        return FALSE;
    done = copy_to(args[0], part, error);
    if (done) {
        /* They are of the database that is there now: SQLite would apply them to the new one. */
        g_unlink(log);
        g_unlink(index);
        done = put(part, path, error);
    }
    if (done)
        output_line(options, "restored %s; start vgpud to use it: \"systemctl start vgpud\"", path);
    close(lock);
    return done;
}
