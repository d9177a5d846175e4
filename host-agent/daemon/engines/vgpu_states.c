/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/engines/vgpu_states.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/mdev.h"
#include "lib/pci.h"

/**
 * Entry - a known vGPU
 * @inode: of its entry in sysfs; another one under the same name is another vGPU
 * @fresh: the values equal the kernel's, unless the vGPU is open
 * @round: of the last look that saw it
 */
typedef struct {
    Vgpu *vgpu;
    ino_t inode;
    char *state;
    gboolean fresh;
    guint round;
} Entry;

/**
 * VgpuStates
 * @entries: UUID, which is the vGPU's own, to Entry
 * @list: of Vgpu, owned by the entries
 * @rest: all entries were at rest at the last look, and none has changed since
 */
struct VgpuStates {
    HostRoot *root;
    GHashTable *entries;
    GPtrArray *list;
    VgpuReadFunc read;
    void *read_data;
    guint round;
    gboolean watched;
    gboolean rest;
    guint64 serial;
};

static void entry_free(void *data)
{
    Entry *entry = data;

    vgpu_free(entry->vgpu);
    g_free(entry->state);
    g_free(entry);
}

VgpuStates *vgpu_states_new(HostRoot *root)
{
    VgpuStates *states = g_new0(VgpuStates, 1);

    states->root = host_root_ref(root);
    states->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    states->list = g_ptr_array_new();
    return states;
}

void vgpu_states_free(VgpuStates *states)
{
    g_ptr_array_unref(states->list);
    g_hash_table_unref(states->entries);
    host_root_unref(states->root);
    g_free(states);
}

void vgpu_states_follow(VgpuStates *states, VgpuReadFunc func, void *data)
{
    states->read = func;
    states->read_data = data;
}

static void note_reading(const VgpuStates *states, Entry *entry, gboolean is_new)
{
    entry->fresh = TRUE;
    if (states->read)
        states->read(entry->vgpu, is_new, states->read_data);
}

/* NULL if it is not one of ours, or is just being removed. */
static Entry *entry_new(const VgpuStates *states, const char *uuid, ino_t inode)
{
    Vgpu *vgpu = vgpu_read(states->root, uuid);
    Entry *entry;

    if (!vgpu)
        return NULL;
    entry = g_new0(Entry, 1);
    entry->vgpu = vgpu;
    entry->inode = inode;
    entry->state = sysfs_read(states->root, vgpu->dir, "state");
    note_reading(states, entry, TRUE);
    return entry;
}

/* None of it can have changed. */
static gboolean is_at_rest(const VgpuStates *states, const Entry *entry)
{
    return states->watched && entry->fresh && strstr(entry->state, "device=closed");
}

/* FALSE: it is gone. */
static gboolean update_entry(VgpuStates *states, Entry *entry)
{
    g_autofree char *state = NULL;
    gboolean closed;

    if (is_at_rest(states, entry))
        return TRUE;
    states->serial++;
    state = sysfs_read(states->root, entry->vgpu->dir, "state");
    if (!state)
        return FALSE;
    closed = strstr(state, "device=closed") != NULL;
    if (entry->fresh && closed && g_strcmp0(state, entry->state) == 0)
        return TRUE;
    vgpu_update(states->root, entry->vgpu, entry->vgpu->dir, state);
    g_free(entry->state);
    entry->state = g_steal_pointer(&state);
    note_reading(states, entry, FALSE);
    return TRUE;
}

/* NULL: not one of ours, or gone. */
static Entry *see_vgpu(VgpuStates *states, const char *uuid, ino_t inode)
{
    Entry *entry = g_hash_table_lookup(states->entries, uuid);

    if (entry && (entry->inode != inode || !update_entry(states, entry))) {
        g_hash_table_remove(states->entries, uuid);
        entry = NULL;
    }
    if (!entry) {
        entry = entry_new(states, uuid, inode);
        if (!entry)
            return NULL;
        states->serial++;
        g_hash_table_insert(states->entries, entry->vgpu->uuid, entry);
    }
    entry->round = states->round;
    return entry;
}

static gboolean was_not_seen(void *uuid, void *value, void *data)
{
    const VgpuStates *states = data;
    const Entry *entry = value;

    (void)uuid;
    return entry->round != states->round;
}

static int by_uuid(const void *a, const void *b)
{
    return strcmp((*(Vgpu *const *)a)->uuid, (*(Vgpu *const *)b)->uuid);
}

/* The directory of all mediated devices; -1: there is none. */
static int open_devices(const VgpuStates *states)
{
    return root_open(states->root, MDEV_DIR, O_RDONLY | O_DIRECTORY, 0);
}

const GPtrArray *vgpu_states_look(VgpuStates *states)
{
    int fd = open_devices(states);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *found;

    states->round++;
    states->rest = TRUE;
    g_ptr_array_set_size(states->list, 0);
    while (dir && (found = readdir(dir))) {
        Entry *entry =
            found->d_name[0] == '.' ? NULL : see_vgpu(states, found->d_name, found->d_ino);

        if (!entry)
            continue;
        states->rest = states->rest && is_at_rest(states, entry);
        g_ptr_array_add(states->list, entry->vgpu);
    }
    if (dir)
        closedir(dir);
    if (g_hash_table_foreach_remove(states->entries, was_not_seen, states))
        states->serial++;
    g_ptr_array_sort(states->list, by_uuid);
    return states->list;
}

const Vgpu *vgpu_states_known(const VgpuStates *states, const char *uuid)
{
    const Entry *entry = g_hash_table_lookup(states->entries, uuid);

    return entry ? entry->vgpu : NULL;
}

const Vgpu *vgpu_states_read_one(VgpuStates *states, const char *uuid)
{
    int fd = open_devices(states);
    const Entry *entry = NULL;
    struct stat status;

    g_ptr_array_set_size(states->list, 0);
    vgpu_states_forget(states, uuid);
    if (fd >= 0 && fstatat(fd, uuid, &status, AT_SYMLINK_NOFOLLOW) == 0)
        entry = see_vgpu(states, uuid, status.st_ino);
    else
        g_hash_table_remove(states->entries, uuid);
    if (fd >= 0)
        close(fd);
    return entry ? entry->vgpu : NULL;
}

void vgpu_states_set_watched(VgpuStates *states, gboolean watched)
{
    states->watched = watched;
}

void vgpu_states_forget(VgpuStates *states, const char *uuid)
{
    GHashTableIter iter;
    void *entry;

    states->rest = FALSE;
    if (uuid) {
        entry = g_hash_table_lookup(states->entries, uuid);
        if (entry)
            ((Entry *)entry)->fresh = FALSE;
        return;
    }
    g_hash_table_iter_init(&iter, states->entries);
    while (g_hash_table_iter_next(&iter, NULL, &entry))
        ((Entry *)entry)->fresh = FALSE;
}

guint64 vgpu_states_serial(const VgpuStates *states)
{
    return states->serial;
}

gboolean vgpu_states_rest(const VgpuStates *states)
{
    return states->watched && states->rest;
}
