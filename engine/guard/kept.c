// SPDX-License-Identifier: MIT
#include "kept.h"

#include "dmabuf.h"
#include "guard_limits.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/**
 * struct kept
 * @key: of the session's connection and its number, in @held
 * @shm: a memfd; otherwise a DMA buffer
 * @object: the buffer, as the arbiter knows it
 */
struct kept {
    gint64 key;
    int fd;
    bool shm;
    struct governor_object object;
};

static gint64 kept_key(int owner, uint32_t id)
{
    return (gint64)owner << 32 | id;
}

void kept_init(struct kept_table *table)
{
    *table = (struct kept_table){
        .held = g_hash_table_new(g_int64_hash, g_int64_equal),
        .released = g_ptr_array_new(),
        .copies = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
    };
}

static guint copies_of(const struct kept_table *table, const struct kept *kept)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(table->copies, &kept->object.inode));
}

static void set_copies(struct kept_table *table, const struct kept *kept, guint count)
{
    if (count)
        g_hash_table_replace(table->copies,
                             g_memdup2(&kept->object.inode, sizeof(kept->object.inode)),
                             GUINT_TO_POINTER(count));
    else
        g_hash_table_remove(table->copies, &kept->object.inode);
}

/* The memory is its last holder's now. */
static void kept_drop_buffer(struct kept_table *table, struct kept *kept)
{
    set_copies(table, kept, copies_of(table, kept) - 1);
    governor_member_forget(table->member, &kept->object);
    close(kept->fd);
    g_free(kept);
    table->buffers--;
}

/* A worker that still writes there while its session ends gets new pages, and ends soon. */
static void kept_empty_shm(struct kept_table *table, struct kept *kept)
{
    struct stat status;

    if (fstat(kept->fd, &status) == 0 && status.st_size > 0)
        fallocate(kept->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, status.st_size);
    close(kept->fd);
    g_free(kept);
    table->memfds--;
}

void kept_clear(struct kept_table *table)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, table->held);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct kept *kept = value;

        g_hash_table_iter_steal(&iter);
        if (kept->shm)
            kept_empty_shm(table, kept);
        else
            kept_drop_buffer(table, kept);
    }
    for (guint i = 0; i < table->released->len; i++)
        kept_drop_buffer(table, g_ptr_array_index(table->released, i));
    g_ptr_array_unref(table->released);
    g_hash_table_unref(table->held);
    g_hash_table_unref(table->copies);
}

/* Only a DMA buffer has references that can be counted. */
static bool charge_buffer(struct kept_table *table, struct kept *kept)
{
    struct stat status;

    if (fstat(kept->fd, &status) < 0 || dmabuf_references(kept->fd) == 0)
        return false;
    kept->object.device = status.st_dev;
    kept->object.inode = status.st_ino;
    return governor_member_import(table->member, &kept->object, dmabuf_bytes(kept->fd));
}

/* A seal against writing, which a client could add, refuses holes as well. */
static bool can_be_emptied(int fd)
{
    int seals;

    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
    seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SEAL) && !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
}

bool kept_add(struct kept_table *table, int owner, uint32_t id, int fd, bool shm)
{
    guint *count = shm ? &table->memfds : &table->buffers;
    gint64 key = kept_key(owner, id);
    struct kept *kept = g_new(struct kept, 1);

    *kept = (struct kept){.key = key, .fd = fd, .shm = shm};
    if (*count >= (shm ? GUARD_KEPT_SHM_MAX : GUARD_KEPT_MAX) ||
        g_hash_table_contains(table->held, &key) ||
        !(shm ? can_be_emptied(fd) : charge_buffer(table, kept))) {
        close(fd);
        g_free(kept);
        return false;
    }
    if (!shm)
        set_copies(table, kept, copies_of(table, kept) + 1);
    g_hash_table_insert(table->held, &kept->key, kept);
    (*count)++;
    return true;
}

static void kept_let_go(struct kept_table *table, struct kept *kept)
{
    if (kept->shm)
        kept_empty_shm(table, kept);
    else
        g_ptr_array_add(table->released, kept);
}

void kept_release(struct kept_table *table, int owner, uint32_t id)
{
    gint64 key = kept_key(owner, id);
    struct kept *kept = g_hash_table_lookup(table->held, &key);

    if (!kept)
        return;
    g_hash_table_remove(table->held, &key);
    kept_let_go(table, kept);
}

void kept_release_all(struct kept_table *table, int owner)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, table->held);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct kept *kept = value;

        if (kept->key >> 32 != owner)
            continue;
        g_hash_table_iter_steal(&iter);
        kept_let_go(table, kept);
    }
}

guint kept_sweep(struct kept_table *table)
{
    guint before = table->released->len;

    for (guint i = before; i-- > 0;) {
        struct kept *kept = g_ptr_array_index(table->released, i);

        if (dmabuf_references(kept->fd) <= copies_of(table, kept))
            kept_drop_buffer(table, g_ptr_array_remove_index_fast(table->released, i));
    }
    return before - table->released->len;
}

uint64_t kept_released_bytes(const struct kept_table *table)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < table->released->len; i++)
        bytes += ((const struct kept *)g_ptr_array_index(table->released, i))->object.bytes;
    return bytes;
}
