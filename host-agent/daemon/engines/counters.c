/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/engines/counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/host_root.h"
#include "lib/mdev.h"
#include "lib/pci.h"

/**
 * Entry - a known vGPU
 * @inode: of its entry in sysfs; another one under the same name is another vGPU
 * @fresh: they equal the kernel's, unless the vGPU is open
 * @round: of the last counters_read() that saw it
 */
typedef struct {
    VgpuCounters counters;
    ino_t inode;
    char *state;
    DrmClients *drm;
    gboolean fresh;
    guint round;
} Entry;

struct Counters {
    HostRoot *root;
    GHashTable *entries; /* UUID, which is the vGPU's own, to Entry */
    GPtrArray *list;     /* of VgpuCounters, owned by the entries */
    GHashTable *uses;    /* UUID of a slice that is no vGPU, to SliceUse */
    guint round;
    gboolean watched;
    gboolean rest; /* all entries were at rest when all were read, and none has changed since */
    guint64 serial;
    const CountersSource *source;
    void *source_data;
    void (*changed)(void *data); /* NULL: nobody waits for a change */
    void *changed_data;
};

static void entry_free(void *data)
{
    Entry *entry = data;

    vgpu_free(entry->counters.vgpu);
    g_clear_pointer(&entry->drm, drm_clients_free);
    g_free(entry->state);
    g_free(entry);
}

Counters *counters_new(HostRoot *root)
{
    Counters *counters = g_new0(Counters, 1);

    counters->root = host_root_ref(root);
    counters->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    counters->list = g_ptr_array_new();
    counters->uses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return counters;
}

void counters_free(Counters *counters)
{
    g_ptr_array_unref(counters->list);
    g_hash_table_unref(counters->entries);
    g_hash_table_unref(counters->uses);
    host_root_unref(counters->root);
    g_free(counters);
}

static void read_counters(const Counters *counters, Entry *entry)
{
    entry->counters.window_faults =
        (guint64)sysfs_number(counters->root, entry->counters.vgpu->dir, "window_faults", 0);
    entry->counters.window_published = (guint64)sysfs_number(
        counters->root, entry->counters.vgpu->dir, "window_published_bytes", 0);
    entry->counters.pinned =
        (guint64)sysfs_number(counters->root, entry->counters.vgpu->dir, "pinned_bytes", 0);
    entry->fresh = TRUE;
}

/* NULL if it is not one of ours, or is just being removed. */
static Entry *entry_new(const Counters *counters, const char *uuid, ino_t inode)
{
    Vgpu *vgpu = vgpu_read(counters->root, uuid);
    Entry *entry;

    if (!vgpu)
        return NULL;
    entry = g_new0(Entry, 1);
    entry->counters.vgpu = vgpu;
    entry->inode = inode;
    entry->state = sysfs_read(counters->root, entry->counters.vgpu->dir, "state");
    read_counters(counters, entry);
    return entry;
}

/* The engine of a closed vGPU holds nothing of a guest. */
static void read_engine(const Counters *counters, Entry *entry)
{
    const Vgpu *vgpu = entry->counters.vgpu;

    if (g_str_equal(vgpu->device, "closed")) {
        entry->counters.drm.vram = 0;
        return;
    }
    if (!entry->drm)
        entry->drm = drm_clients_new(counters->root, vgpu->uuid, vgpu->gpu);
    drm_clients_read(entry->drm, &entry->counters.drm);
}

/* None of it can have changed. */
static gboolean is_at_rest(const Counters *counters, const Entry *entry)
{
    return counters->watched && entry->fresh && strstr(entry->state, "device=closed");
}

/* FALSE: it is gone. */
static gboolean update(Counters *counters, Entry *entry)
{
    g_autofree char *state = NULL;
    gboolean closed;

    if (is_at_rest(counters, entry))
        return TRUE;
    counters->serial++;
    state = sysfs_read(counters->root, entry->counters.vgpu->dir, "state");
    if (!state)
        return FALSE;
    closed = strstr(state, "device=closed") != NULL;
    if (entry->fresh && closed && g_strcmp0(state, entry->state) == 0)
        return TRUE;
    vgpu_update(counters->root, entry->counters.vgpu, entry->counters.vgpu->dir, state);
    read_counters(counters, entry);
    read_engine(counters, entry);
    g_free(entry->state);
    entry->state = g_steal_pointer(&state);
    return TRUE;
}

/* NULL: not one of ours, or gone. */
static Entry *see(Counters *counters, const char *uuid, ino_t inode)
{
    Entry *entry = g_hash_table_lookup(counters->entries, uuid);

    if (entry && (entry->inode != inode || !update(counters, entry))) {
        g_hash_table_remove(counters->entries, uuid);
        entry = NULL;
    }
    if (!entry) {
        entry = entry_new(counters, uuid, inode);
        if (!entry)
            return NULL;
        counters->serial++;
        g_hash_table_insert(counters->entries, entry->counters.vgpu->uuid, entry);
        read_engine(counters, entry);
    }
    entry->round = counters->round;
    return entry;
}

static gboolean was_not_seen(void *uuid, void *value, void *data)
{
    const Counters *counters = data;
    const Entry *entry = value;

    (void)uuid;
    return entry->round != counters->round;
}

static int by_uuid(const void *a, const void *b)
{
    return strcmp((*(VgpuCounters *const *)a)->vgpu->uuid, (*(VgpuCounters *const *)b)->vgpu->uuid);
}

void counters_set_source(Counters *counters, const CountersSource *source, void *data)
{
    counters->source = source;
    counters->source_data = data;
}

void counters_put_use(Counters *counters, const char *uuid, const SliceUse *use)
{
    Entry *entry = g_hash_table_lookup(counters->entries, uuid);

    if (!entry) {
        g_hash_table_insert(counters->uses, g_strdup(uuid), g_memdup2(use, sizeof(*use)));
        return;
    }
    entry->counters.slice = *use;
    entry->counters.slice_known = TRUE;
}

const SliceUse *counters_use(const Counters *counters, const char *uuid)
{
    return g_hash_table_lookup(counters->uses, uuid);
}

gboolean counters_vram(const VgpuCounters *counters, guint64 *bytes)
{
    *bytes = counters->drm.vram_known ? counters->drm.vram : counters->slice.vram_used;
    return counters->drm.vram_known || counters->slice_known;
}

gboolean counters_gpu_ns(const VgpuCounters *counters, guint64 *ns)
{
    *ns = counters->drm.gpu_ns;
    return counters->drm.known || (counters->slice_known && slice_use_gpu_ns(&counters->slice, ns));
}

/* The directory of all mediated devices; -1: there is none. */
static int open_devices(const Counters *counters)
{
    return root_open(counters->root, MDEV_DIR, O_RDONLY | O_DIRECTORY, 0);
}

/* The GPU's driver does not distinguish whether it was alone. */
void counters_gpu_times(const VgpuCounters *counters, guint64 *gpu_ns, guint64 *alone_ns)
{
    if (counters->drm.known) {
        *gpu_ns = counters->drm.gpu_ns;
    } else if (counters->slice_known) {
        *gpu_ns = counters->slice.gpu_ns;
        *alone_ns = counters->slice.alone_ns;
    }
}

const GPtrArray *counters_look(Counters *counters)
{
    int fd = open_devices(counters);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *found;

    counters->round++;
    counters->rest = TRUE;
    g_ptr_array_set_size(counters->list, 0);
    while (dir && (found = readdir(dir))) {
        Entry *entry = found->d_name[0] == '.' ? NULL : see(counters, found->d_name, found->d_ino);

        if (!entry)
            continue;
        counters->rest = counters->rest && is_at_rest(counters, entry);
        g_ptr_array_add(counters->list, &entry->counters);
    }
    if (dir)
        closedir(dir);
    if (g_hash_table_foreach_remove(counters->entries, was_not_seen, counters))
        counters->serial++;
    g_ptr_array_sort(counters->list, by_uuid);
    return counters->list;
}

const GPtrArray *counters_read(Counters *counters)
{
    counters_look(counters);
    g_hash_table_remove_all(counters->uses);
    if (counters->source)
        counters->source->read(counters, counters->source_data);
    return counters->list;
}

guint64 counters_serial(const Counters *counters)
{
    return counters->serial;
}

void counters_note_change(Counters *counters)
{
    counters->serial++;
}

gboolean counters_rest(const Counters *counters, guint64 serial)
{
    return counters->watched && counters->rest && serial == counters->serial &&
           (!counters->source || counters->source->rests(counters->source_data));
}

void counters_await_change(Counters *counters, void (*func)(void *data), void *data)
{
    if (counters->source && !counters->changed != !func)
        counters->source->watch(func != NULL, counters->source_data);
    counters->changed = func;
    counters->changed_data = data;
}

void counters_end_rest(Counters *counters)
{
    void (*func)(void *data) = counters->changed;
    void *data = counters->changed_data;

    if (!func)
        return;
    counters_await_change(counters, NULL, NULL);
    func(data);
}

const VgpuCounters *counters_find(const GPtrArray *list, const char *uuid)
{
    guint low = 0;
    guint high = list->len;

    while (low < high) {
        guint middle = low + (high - low) / 2;
        const VgpuCounters *vgpu = g_ptr_array_index(list, middle);
        int order = strcmp(uuid, vgpu->vgpu->uuid);

        if (!order)
            return vgpu;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const VgpuCounters *counters_known(const Counters *counters, const char *uuid)
{
    const Entry *entry = g_hash_table_lookup(counters->entries, uuid);

    return entry ? &entry->counters : NULL;
}

const VgpuCounters *counters_read_one(Counters *counters, const char *uuid)
{
    int fd = open_devices(counters);
    Entry *entry = NULL;
    struct stat status;

    g_ptr_array_set_size(counters->list, 0);
    counters_forget(counters, uuid);
    if (fd >= 0 && fstatat(fd, uuid, &status, AT_SYMLINK_NOFOLLOW) == 0)
        entry = see(counters, uuid, status.st_ino);
    else
        g_hash_table_remove(counters->entries, uuid);
    if (fd >= 0)
        close(fd);
    return entry ? &entry->counters : NULL;
}

void counters_set_watched(Counters *counters, gboolean watched)
{
    counters->watched = watched;
}

void counters_forget(Counters *counters, const char *uuid)
{
    GHashTableIter iter;
    void *entry;

    counters->rest = FALSE;
    counters_end_rest(counters);
    if (uuid) {
        entry = g_hash_table_lookup(counters->entries, uuid);
        if (entry)
            ((Entry *)entry)->fresh = FALSE;
        return;
    }
    g_hash_table_iter_init(&iter, counters->entries);
    while (g_hash_table_iter_next(&iter, NULL, &entry))
        ((Entry *)entry)->fresh = FALSE;
}
