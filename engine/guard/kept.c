// SPDX-License-Identifier: MIT
#include "kept.h"

#include "dmabuf.h"
#include "keeper.h"

#include <sys/stat.h>
#include <unistd.h>

/**
 * struct kept
 * @owner: connection of the session that holds it; -1: released
 * @key: in by_owner
 * @object: as the arbiter knows it
 */
struct kept {
    int fd;
    int owner;
    gint64 key;
    struct governor_object object;
};

static gint64 key_of(int owner, uint32_t id)
{
    return (gint64)owner << 32 | id;
}

void kept_init(struct kept_table *table)
{
    *table = (struct kept_table){
        .buffers = g_ptr_array_new(),
        .by_owner = g_hash_table_new(g_int64_hash, g_int64_equal),
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

/* Removes it from everything but the array. */
static void drop(struct kept_table *table, struct kept *kept)
{
    set_copies(table, kept, copies_of(table, kept) - 1);
    governor_member_forget(table->member, &kept->object);
    close(kept->fd);
    g_free(kept);
}

void kept_clear(struct kept_table *table)
{
    for (guint i = 0; i < table->buffers->len; i++)
        drop(table, g_ptr_array_index(table->buffers, i));
    g_ptr_array_unref(table->buffers);
    g_hash_table_unref(table->by_owner);
    g_hash_table_unref(table->copies);
}

/* Only a DMA buffer has references that can be counted. */
static bool describe(struct kept *kept, int fd, uint64_t *bytes)
{
    struct stat status;

    if (fstat(fd, &status) < 0 || dmabuf_references(fd) == 0)
        return false;
    *bytes = dmabuf_bytes(fd);
    kept->object.device = status.st_dev;
    kept->object.inode = status.st_ino;
    return true;
}

bool kept_add(struct kept_table *table, int owner, uint32_t id, int fd)
{
    struct kept *kept = g_new0(struct kept, 1);
    uint64_t bytes;

    kept->fd = fd;
    kept->owner = owner;
    kept->key = key_of(owner, id);
    if (table->buffers->len >= KEEPER_MAX_KEPT ||
        g_hash_table_contains(table->by_owner, &kept->key) || !describe(kept, fd, &bytes) ||
        !governor_member_import(table->member, &kept->object, bytes)) {
        close(fd);
        g_free(kept);
        return false;
    }
    set_copies(table, kept, copies_of(table, kept) + 1);
    g_hash_table_add(table->by_owner, &kept->key);
    g_ptr_array_add(table->buffers, kept);
    return true;
}

static bool is_last(const struct kept_table *table, const struct kept *kept)
{
    return dmabuf_references(kept->fd) <= copies_of(table, kept);
}

static void give_up(struct kept_table *table, struct kept *kept)
{
    g_hash_table_remove(table->by_owner, &kept->key);
    kept->owner = -1;
    table->released++;
}

void kept_release(struct kept_table *table, int owner, uint32_t id)
{
    gint64 key = key_of(owner, id);
    gpointer found = g_hash_table_lookup(table->by_owner, &key);

    /* A set: the key is a part of its kept. */
    if (found)
        give_up(table, (struct kept *)((char *)found - G_STRUCT_OFFSET(struct kept, key)));
}

void kept_release_all(struct kept_table *table, int owner)
{
    for (guint i = 0; i < table->buffers->len; i++) {
        struct kept *kept = g_ptr_array_index(table->buffers, i);

        if (kept->owner == owner)
            give_up(table, kept);
    }
}

guint kept_sweep(struct kept_table *table)
{
    guint before = table->buffers->len;

    for (guint i = before; table->released && i-- > 0;) {
        struct kept *kept = g_ptr_array_index(table->buffers, i);

        if (kept->owner >= 0 || !is_last(table, kept))
            continue;
        g_ptr_array_remove_index_fast(table->buffers, i);
        table->released--;
        drop(table, kept);
    }
    return before - table->buffers->len;
}

uint64_t kept_released_bytes(const struct kept_table *table)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < table->buffers->len; i++) {
        const struct kept *kept = g_ptr_array_index(table->buffers, i);

        bytes += kept->owner < 0 ? kept->object.bytes : 0;
    }
    return bytes;
}
