/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/owners.h"

#include "host-agent/meter/owner_energy.h"

#include <string.h>

#define SAMPLE_S 60
#define KEPT_S   3600

/**
 * Owners
 * @uses: UUID, which is the use's own, to OwnerUse
 * @timer: 0: there is nothing to sample or to forget
 */
struct Owners {
    const HostView *view;
    GHashTable *uses;
    OwnerEnergy *energy;
    guint timer;
};

static gint64 now_s(void)
{
    return g_get_real_time() / G_USEC_PER_SEC;
}

/* What could not be written is written with the next sample. */
static void put_use(const Owners *owners, OwnerUse *use)
{
    g_autoptr(GError) error = NULL;

    use->changed = !owner_table_put(host_view_db(owners->view), use, &error);
    if (use->changed)
        g_warning("cannot store what %s has used: %s", use->owner, error->message);
}

/* Counters begin again at 0 when the arbiter, or a vGPU's engine, was started again. */
static guint64 step(guint64 *last, guint64 now)
{
    guint64 more = now >= *last ? now - *last : now;

    *last = now;
    return more;
}

/* @alone_ns: beside the GPU time of @now. */
static void add_counts(OwnerUse *use, const OwnerCounts *now, guint64 alone_ns, guint64 vram)
{
    OwnerUse before = *use;

    use->sum.gpu_ns += step(&use->last.gpu_ns, now->gpu_ns) + step(&use->last_alone_ns, alone_ns);
    use->sum.waited_ns += step(&use->last.waited_ns, now->waited_ns);
    use->sum.throttled_ns += step(&use->last.throttled_ns, now->throttled_ns);
    use->peak_vram = MAX(use->peak_vram, vram);
    use->changed = use->changed || memcmp(&before, use, sizeof(before)) != 0;
}

static void add_vgpu(OwnerUse *use, const VgpuCounters *vgpu)
{
    guint64 vram = 0, alone_ns = use->last_alone_ns;
    OwnerCounts now = use->last;

    if (!vgpu)
        return;
    counters_gpu_times(vgpu, &now.gpu_ns, &alone_ns);
    if (vgpu->slice_known) {
        now.waited_ns = vgpu->slice.waited_ns;
        now.throttled_ns = vgpu->slice.throttled_ns;
    }
    counters_vram(vgpu, &vram);
    add_counts(use, &now, alone_ns, vgpu->slice_known ? MAX(vram, vgpu->slice.vram_peak) : vram);
}

static void add_slice(OwnerUse *use, const SliceUse *slice)
{
    if (slice)
        add_counts(use, &(OwnerCounts){slice->gpu_ns, slice->waited_ns, slice->throttled_ns},
                   slice->alone_ns, slice->vram_peak);
}

static void add_energy(const Owners *owners, OwnerUse *use)
{
    guint64 uj;

    if (!owner_energy_take(owners->energy, use->uuid, &uj))
        return;
    use->changed = use->changed || uj || use->energy_uj < 0;
    use->energy_uj = MAX(use->energy_uj, 0) + (gint64)uj;
}

/* A row that can't be removed is read again with the next start, and goes when it is old. */
static void forget_use(const Owners *owners, const OwnerUse *use)
{
    g_autoptr(GError) error = NULL;

    if (!owner_table_remove(host_view_db(owners->view), use->uuid, &error))
        g_warning("cannot forget what %s has used: %s", use->owner, error->message);
}

static gboolean is_old(void *uuid, void *value, void *data)
{
    const Owners *owners = data;
    const OwnerUse *use = value;

    (void)uuid;
    if (!use->ended || now_s() - use->ended < KEPT_S)
        return FALSE;
    forget_use(owners, use);
    return TRUE;
}

static gboolean sample_again(void *data)
{
    Owners *owners = data;

    owners_sample(owners);
    g_hash_table_foreach_remove(owners->uses, is_old, owners);
    if (g_hash_table_size(owners->uses))
        return G_SOURCE_CONTINUE;
    owner_energy_stop(owners->energy);
    owners->timer = 0;
    return G_SOURCE_REMOVE;
}

static void set_timer(Owners *owners)
{
    if (g_hash_table_size(owners->uses) && !owners->timer)
        owners->timer = g_timeout_add_seconds(SAMPLE_S, sample_again, owners);
}

void owners_look(Owners *owners)
{
    const Counters *counters = host_view_counters(owners->view);
    GHashTableIter iter;
    void *value;

    if (g_hash_table_size(owners->uses))
        owner_energy_start(owners->energy);
    owner_energy_look(owners->energy);
    g_hash_table_iter_init(&iter, owners->uses);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        OwnerUse *use = value;
        const Slice *slice = use->ended ? NULL : host_view_slice(owners->view, use->uuid);

        if (slice && slice_is_vgpu(slice))
            add_vgpu(use, counters_known(counters, use->uuid));
        else if (slice)
            add_slice(use, counters_use(counters, use->uuid));
        add_energy(owners, use);
    }
}

static void store_changed(const Owners *owners)
{
    g_autoptr(GPtrArray) put_now = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    GHashTableIter iter;
    void *value;
    gboolean begun = db_begin(host_view_db(owners->view), NULL);

    g_hash_table_iter_init(&iter, owners->uses);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (!((OwnerUse *)value)->changed)
            continue;
        put_use(owners, value);
        g_ptr_array_add(put_now, value);
    }
    if (!begun || db_commit(host_view_db(owners->view), &error))
        return;
    g_warning("cannot store what owners have used: %s", error->message);
    db_rollback(host_view_db(owners->view));
    for (guint i = 0; i < put_now->len; i++)
        ((OwnerUse *)put_now->pdata[i])->changed = TRUE;
}

void owners_sample(Owners *owners)
{
    if (!g_hash_table_size(owners->uses))
        return;
    counters_read(host_view_counters(owners->view));
    owners_look(owners);
    store_changed(owners);
}

static void end_use(const Owners *owners, OwnerUse *use)
{
    use->ended = now_s();
    put_use(owners, use);
}

static gboolean has_slices(const Owners *owners, const char *owner)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, owners->uses);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const OwnerUse *use = value;

        if (!use->ended && g_str_equal(use->owner, owner))
            return TRUE;
    }
    return FALSE;
}

/* One that has no slice and gets one is another job of that name. */
static void begin_owner(Owners *owners, const char *owner)
{
    GHashTableIter iter;
    void *value;

    if (has_slices(owners, owner))
        return;
    g_hash_table_iter_init(&iter, owners->uses);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (!g_str_equal(((const OwnerUse *)value)->owner, owner))
            continue;
        forget_use(owners, value);
        g_hash_table_iter_remove(&iter);
    }
}

/* The row is written when the slice is used, or ends. */
static void note_slice(Owners *owners, const Slice *slice)
{
    OwnerUse *use;

    if (!*slice->owner || g_hash_table_contains(owners->uses, slice->uuid))
        return;
    begin_owner(owners, slice->owner);
    use = g_new0(OwnerUse, 1);
    use->uuid = g_strdup(slice->uuid);
    use->owner = g_strdup(slice->owner);
    use->energy_uj = OWNER_NO_ENERGY;
    g_hash_table_insert(owners->uses, use->uuid, use);
    owner_energy_start(owners->energy);
    set_timer(owners);
}

void owners_update(Owners *owners, const char *uuid)
{
    const Slice *slice = host_view_slice(owners->view, uuid);
    OwnerUse *use = g_hash_table_lookup(owners->uses, uuid);

    if (slice)
        note_slice(owners, slice);
    else if (use && !use->ended)
        end_use(owners, use);
    owner_energy_update(owners->energy, uuid);
}

static void add_to(OwnerTotals *totals, const OwnerUse *use)
{
    totals->slices++;
    totals->present += !use->ended;
    totals->counts.gpu_ns += use->sum.gpu_ns;
    totals->counts.waited_ns += use->sum.waited_ns;
    totals->counts.throttled_ns += use->sum.throttled_ns;
    totals->peak_vram += use->peak_vram;
    totals->energy_known = use->energy_uj >= 0 && (totals->slices == 1 || totals->energy_known);
    totals->energy_uj += (guint64)MAX(use->energy_uj, 0);
    totals->ended = MAX(totals->ended, use->ended);
}

OwnerTotals owners_totals(const Owners *owners, const char *owner)
{
    OwnerTotals totals = {.owner = owner};
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, owners->uses);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (g_str_equal(((const OwnerUse *)value)->owner, owner))
            add_to(&totals, value);
    return totals;
}

/* Those that have slices, then those whose last one ended last. */
static int by_end(const void *a, const void *b)
{
    const OwnerTotals *one = *(OwnerTotals *const *)a;
    const OwnerTotals *two = *(OwnerTotals *const *)b;

    if (!one->present != !two->present)
        return one->present ? -1 : 1;
    if (!one->present && one->ended != two->ended)
        return one->ended > two->ended ? -1 : 1;
    return strcmp(one->owner, two->owner);
}

GPtrArray *owners_list(const Owners *owners)
{
    g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, owners->uses);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const OwnerUse *use = value;
        OwnerTotals *totals = g_hash_table_lookup(known, use->owner);

        if (!totals) {
            totals = g_new0(OwnerTotals, 1);
            totals->owner = use->owner;
            g_hash_table_insert(known, use->owner, totals);
            g_ptr_array_add(list, totals);
        }
        add_to(totals, use);
    }
    g_ptr_array_sort(list, by_end);
    return list;
}

Owners *owners_new(const HostView *view, GError **error)
{
    Owners *owners = g_new0(Owners, 1);
    g_autoptr(GPtrArray) stored = owner_table_read(host_view_db(view), error);
    const GPtrArray *all = host_view_slices(view);

    owners->view = view;
    owners->energy = owner_energy_new(view);
    owners->uses =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)owner_use_free);
    if (!stored) {
        owners_free(owners);
        return NULL;
    }
    g_ptr_array_set_free_func(stored, NULL);
    for (guint i = 0; i < stored->len; i++) {
        OwnerUse *use = stored->pdata[i];

        g_hash_table_insert(owners->uses, use->uuid, use);
        /* vgpud was killed between both writes. */
        if (!use->ended && !host_view_slice(view, use->uuid))
            end_use(owners, use);
    }
    for (guint i = 0; i < all->len; i++)
        note_slice(owners, g_ptr_array_index(all, i));
    g_hash_table_foreach_remove(owners->uses, is_old, owners);
    set_timer(owners);
    return owners;
}

void owners_free(Owners *owners)
{
    g_clear_handle_id(&owners->timer, g_source_remove);
    if (g_hash_table_size(owners->uses))
        store_changed(owners);
    owner_energy_free(owners->energy);
    g_hash_table_unref(owners->uses);
    g_free(owners);
}
