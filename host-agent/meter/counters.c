/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/counters.h"

#include "lib/host_root.h"

/**
 * Entry - a vGPU
 * @drm: of its engine; NULL: no VM has opened it
 */
typedef struct {
    VgpuCounters counters;
    DrmClients *drm;
} Entry;

/**
 * Counters
 * @entries: UUID to Entry
 * @list: of VgpuCounters, owned by the entries
 * @uses: UUID of a slice that is no vGPU, to SliceUse
 * @changes: how often a source has read something that can have changed
 * @changed: NULL: nobody waits for a change
 */
struct Counters {
    HostRoot *root;
    VgpuStates *states;
    GHashTable *entries;
    GPtrArray *list;
    GHashTable *uses;
    guint64 changes;
    const CountersSource *source;
    void *source_data;
    void (*changed)(void *data);
    void *changed_data;
};

static void entry_free(void *data)
{
    Entry *entry = data;

    g_clear_pointer(&entry->drm, drm_clients_free);
    g_free(entry);
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

static guint64 read_number(const Counters *counters, const Vgpu *vgpu, const char *name)
{
    return (guint64)sysfs_number(counters->root, vgpu->dir, name, 0);
}

/* With the driver's other values of @vgpu. */
static void read_vgpu(const Vgpu *vgpu, gboolean is_new, void *data)
{
    Counters *counters = data;
    Entry *entry = g_hash_table_lookup(counters->entries, vgpu->uuid);

    if (is_new) {
        entry = g_new0(Entry, 1);
        entry->counters.vgpu = vgpu;
        g_hash_table_replace(counters->entries, g_strdup(vgpu->uuid), entry);
    }
    entry->counters.window_faults = read_number(counters, vgpu, "window_faults");
    entry->counters.window_published = read_number(counters, vgpu, "window_published_bytes");
    entry->counters.pinned = read_number(counters, vgpu, "pinned_bytes");
    read_engine(counters, entry);
}

Counters *counters_new(HostRoot *root)
{
    Counters *counters = g_new0(Counters, 1);

    counters->root = host_root_ref(root);
    counters->states = vgpu_states_new(root);
    vgpu_states_follow(counters->states, read_vgpu, counters);
    counters->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
    counters->list = g_ptr_array_new();
    counters->uses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return counters;
}

void counters_free(Counters *counters)
{
    g_ptr_array_unref(counters->list);
    g_hash_table_unref(counters->entries);
    g_hash_table_unref(counters->uses);
    vgpu_states_free(counters->states);
    host_root_unref(counters->root);
    g_free(counters);
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

static gboolean is_gone(void *uuid, void *entry, void *states)
{
    (void)entry;
    return !vgpu_states_known(states, uuid);
}

const GPtrArray *counters_look(Counters *counters)
{
    const GPtrArray *vgpus = vgpu_states_look(counters->states);

    g_ptr_array_set_size(counters->list, 0);
    for (guint i = 0; i < vgpus->len; i++) {
        const Vgpu *vgpu = g_ptr_array_index(vgpus, i);
        Entry *entry = g_hash_table_lookup(counters->entries, vgpu->uuid);

        g_ptr_array_add(counters->list, &entry->counters);
    }
    if (g_hash_table_size(counters->entries) > vgpus->len)
        g_hash_table_foreach_remove(counters->entries, is_gone, counters->states);
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
    return vgpu_states_serial(counters->states) + counters->changes;
}

void counters_note_change(Counters *counters)
{
    counters->changes++;
}

gboolean counters_rest(const Counters *counters, guint64 serial)
{
    return vgpu_states_rest(counters->states) && serial == counters_serial(counters) &&
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

const VgpuCounters *counters_known(const Counters *counters, const char *uuid)
{
    const Entry *entry = g_hash_table_lookup(counters->entries, uuid);

    return entry ? &entry->counters : NULL;
}

const VgpuCounters *counters_read_one(Counters *counters, const char *uuid)
{
    const Vgpu *vgpu = vgpu_states_read_one(counters->states, uuid);

    g_ptr_array_set_size(counters->list, 0);
    counters_end_rest(counters);
    if (!vgpu)
        g_hash_table_remove(counters->entries, uuid);
    return vgpu ? counters_known(counters, uuid) : NULL;
}

void counters_set_watched(Counters *counters, gboolean watched)
{
    vgpu_states_set_watched(counters->states, watched);
}

void counters_forget(Counters *counters, const char *uuid)
{
    vgpu_states_forget(counters->states, uuid);
    counters_end_rest(counters);
}
