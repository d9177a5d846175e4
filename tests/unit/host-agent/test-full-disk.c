/* SPDX-License-Identifier: MIT */
/* A database on a full file system: refused with a useful message, and none of it is lost. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "host-agent/store/db.h"
#include "tests/unit/file_tree.h"

typedef struct {
    HostRoot *root;
    char *dir;
} Disk;

static gboolean disk_new(Disk *disk)
{
    disk->root = file_tree_new();
    disk->dir = root_path(disk->root, "var/lib/vgpu", NULL);
    g_assert_cmpint(g_mkdir_with_parents(disk->dir, 0700), ==, 0);
    if (mount("tmpfs", disk->dir, "tmpfs", 0, "size=512k") == 0)
        return TRUE;
    g_test_skip("only root can mount a small file system");
    return FALSE;
}

static void disk_free(Disk *disk)
{
    umount2(disk->dir, MNT_DETACH);
    g_free(disk->dir);
    file_tree_free(disk->root);
}

/* Until not a single byte fits. */
static void fill(const Disk *disk)
{
    g_autofree char *path = g_build_filename(disk->dir, "filled", NULL);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    static const char some[4096];

    g_assert_cmpint(fd, >=, 0);
    while (write(fd, some, sizeof(some)) > 0)
        continue;
    g_assert_cmpint(errno, ==, ENOSPC);
    close(fd);
}

static void make_room(const Disk *disk)
{
    g_autofree char *path = g_build_filename(disk->dir, "filled", NULL);

    g_assert_cmpint(unlink(path), ==, 0);
}

/* Big enough to need a separate page. */
static gboolean put(Db *db, const char *tenant, GError **error)
{
    g_autofree char *users = g_strnfill(5000, 'u');

    return db_run(db, error, "INSERT INTO schedule VALUES (?, ?)", "sx", tenant, (gint64)1) &&
           db_run(db, error, "INSERT INTO schedule VALUES (?, ?)", "sx", users, (gint64)1);
}

static void count_row(sqlite3_stmt *row, void *data)
{
    *(int *)data = sqlite3_column_int(row, 0);
}

static int count(Db *db)
{
    int rows = -1;

    g_assert_true(db_each(db, NULL, count_row, &rows, "SELECT count(*) FROM schedule", ""));
    return rows;
}

static void must_say_full(const GError *error)
{
    g_assert_nonnull(error);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, "state.db"));
    g_assert_nonnull(strstr(error->message, "is full; free some space"));
    g_assert_null(strstr(error->message, "INSERT"));
    g_assert_null(strstr(error->message, "move it away"));
}

static void test_write(void)
{
    Disk disk;
    g_autoptr(Db) db = NULL;
    g_autoptr(GError) error = NULL;

    if (!disk_new(&disk))
        return;
    db = db_open(disk.root, NULL);
    g_assert_nonnull(db);
    fill(&disk);
    g_assert_true(db_begin(db, NULL));
    g_assert_false(put(db, "one", &error) && db_commit(db, &error));
    must_say_full(error);
    db_rollback(db);
    g_assert_cmpint(count(db), ==, 0);
    make_room(&disk);
    g_assert_true(put(db, "one", NULL));
    g_assert_cmpint(count(db), ==, 2);
    g_clear_pointer(&db, db_free);
    disk_free(&disk);
}

/* SQLite needs space to open a database, too. */
static void test_open(void)
{
    Disk disk;
    Db *db;
    g_autoptr(GError) error = NULL;

    if (!disk_new(&disk))
        return;
    db = db_open(disk.root, NULL);
    g_assert_true(put(db, "one", NULL));
    db_free(db);
    fill(&disk);
    db = db_open(disk.root, &error);
    if (db)
        g_assert_cmpint(count(db), ==, 2);
    else
        must_say_full(error);
    if (db)
        db_free(db);
    make_room(&disk);
    db = db_open(disk.root, NULL);
    g_assert_cmpint(count(db), ==, 2);
    db_free(db);
    disk_free(&disk);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/full-disk/write", test_write);
    g_test_add_func("/full-disk/open", test_open);
    return g_test_run();
}
