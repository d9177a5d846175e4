// SPDX-License-Identifier: MIT
#include "kept_shm.h"

#include "keeper.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static gint64 key_of(int owner, uint32_t id)
{
    return (gint64)owner << 32 | id;
}

/* A worker that still writes there while its session ends gets new pages, and ends soon. */
static void give_back(void *fd)
{
    int number = GPOINTER_TO_INT(fd);
    struct stat status;

    if (fstat(number, &status) == 0 && status.st_size > 0)
        fallocate(number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, status.st_size);
    close(number);
}

void kept_shm_init(struct kept_shm *table)
{
    table->fds = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, give_back);
}

void kept_shm_clear(struct kept_shm *table)
{
    g_hash_table_unref(table->fds);
}

/* A seal against writing, which a client could add, refuses holes as well. */
static bool can_be_given_back(int fd)
{
    int seals;

    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
    seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SEAL) && !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
}

bool kept_shm_add(struct kept_shm *table, int owner, uint32_t id, int fd)
{
    gint64 key = key_of(owner, id);

    if (g_hash_table_size(table->fds) >= KEEPER_MAX_SHM ||
        g_hash_table_contains(table->fds, &key) || !can_be_given_back(fd)) {
        close(fd);
        return false;
    }
    g_hash_table_insert(table->fds, g_memdup2(&key, sizeof(key)), GINT_TO_POINTER(fd));
    return true;
}

void kept_shm_release(struct kept_shm *table, int owner, uint32_t id)
{
    gint64 key = key_of(owner, id);

    g_hash_table_remove(table->fds, &key);
}

static gboolean is_of(void *key, void *fd G_GNUC_UNUSED, void *owner)
{
    return *(const gint64 *)key >> 32 == GPOINTER_TO_INT(owner);
}

void kept_shm_release_all(struct kept_shm *table, int owner)
{
    g_hash_table_foreach_remove(table->fds, is_of, GINT_TO_POINTER(owner));
}
