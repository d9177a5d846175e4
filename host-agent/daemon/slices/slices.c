/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/slices.h"

#include <errno.h>
#include <sys/stat.h>

#include "host-agent/daemon/host/audit.h"
#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/model/placement.h"
#include "host-agent/model/slice_keys.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "lib/vgpu.h"
#include "lib/mdev.h"

struct Slices {
    Host *host;
    Offers *offers;
    const Operations *operations;
    char *boot;          /* id of this boot; "": not known */
    GPtrArray *list;     /* of Slice */
    GHashTable *by_uuid; /* owned by the list */
    GHashTable *sums;    /* GPU's address to Room, of which only the promised part is used */
    guint64 displaced_most;
    SlicesFunc changed;
    void *changed_data;
    gboolean was_read; /* the kernel, whose state the database does not have */
};

static Room *sums_of(const Slices *slices, const char *gpu)
{
    Room *room = g_hash_table_lookup(slices->sums, gpu);

    if (!room) {
        room = g_new0(Room, 1);
        g_hash_table_insert(slices->sums, g_strdup(gpu), room);
    }
    return room;
}

static void show_sums(const Slices *slices, const char *gpu)
{
    VgpuGpu *interface = host_gpu_interface(slices->host, gpu);
    const Room *room = sums_of(slices, gpu);

    if (!interface)
        return;
    vgpu_gpu_set_promised_vram(interface, room->promised_vram);
    vgpu_gpu_set_promised_compute(interface, room->promised_compute);
    vgpu_gpu_set_vgpus(interface, room->count);
}

/* Removed from the list and the sums; the slice is freed. */
static void take_out(Slices *slices, const char *uuid)
{
    Slice *slice = g_hash_table_lookup(slices->by_uuid, uuid);
    g_autofree char *gpu = NULL;

    if (!slice)
        return;
    gpu = g_strdup(slice->gpu);
    if (slice_is_promised(slice))
        room_subtract(sums_of(slices, gpu), slice);
    g_hash_table_remove(slices->by_uuid, uuid);
    g_ptr_array_remove(slices->list, slice);
    show_sums(slices, gpu);
}

static void tell_change(Slices *slices, const char *uuid)
{
    if (slices->changed)
        slices->changed(uuid, slices->changed_data);
}

/* Takes @slice. */
static void put_in(Slices *slices, Slice *slice)
{
    take_out(slices, slice->uuid);
    g_ptr_array_add(slices->list, slice);
    g_hash_table_insert(slices->by_uuid, slice->uuid, slice);
    if (slice_is_promised(slice))
        room_add(sums_of(slices, slice->gpu), slice);
    show_sums(slices, slice->gpu);
    tell_change(slices, slice->uuid);
}

/*
 * Until 0.2.0 a file in /run was the mark of a suspended slice. Those of this boot were left by the
 * vgpud that this one has replaced.
 */
static gboolean take_over_marks(const Slices *slices, GError **error)
{
    static const char dir[] = "/run/vgpu/suspended";
    HostRoot *root = host_root(slices->host);
    g_auto(GStrv) uuids = sysfs_list(root, dir);

    for (guint i = 0; uuids[i]; i++) {
        g_autofree char *path = g_build_filename(dir, uuids[i], NULL);

        if (!suspension_table_put(host_db(slices->host), uuids[i], slices->boot, error))
            return FALSE;
        root_remove(root, path);
    }
    return TRUE;
}

static gboolean load_slices(Slices *slices, GError **error)
{
    Db *db = host_db(slices->host);
    g_autoptr(GPtrArray) stored = slice_table_read(db, error);
    g_autoptr(GHashTable) suspended = NULL;

    if (!stored || !take_over_marks(slices, error))
        return FALSE;
    suspended = suspension_table_read(db, error);
    for (guint i = 0; suspended && i < stored->len; i++) {
        Slice *slice = slice_copy(g_ptr_array_index(stored, i));

        slice->suspended = g_hash_table_contains(suspended, slice->uuid);
        put_in(slices, slice);
    }
    return suspended != NULL;
}

Slices *slices_new(Host *host, Offers *offers, const Operations *operations, GError **error)
{
    Slices *slices = g_new0(Slices, 1);

    slices->host = host;
    slices->offers = offers;
    slices->operations = operations;
    slices->boot = sysfs_read(host_root(host), "/proc/sys/kernel/random", "boot_id");
    if (!slices->boot)
        slices->boot = g_strdup("");
    slices->list = g_ptr_array_new_with_free_func((GDestroyNotify)slice_free);
    slices->by_uuid = g_hash_table_new(g_str_hash, g_str_equal);
    slices->sums =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)room_free);
    if (!load_slices(slices, error)) {
        slices_free(slices);
        return NULL;
    }
    return slices;
}

void slices_free(Slices *slices)
{
    g_hash_table_unref(slices->by_uuid);
    g_hash_table_unref(slices->sums);
    g_ptr_array_unref(slices->list);
    g_free(slices->boot);
    g_free(slices);
}

void slices_watch(Slices *slices, SlicesFunc func, void *data)
{
    slices->changed = func;
    slices->changed_data = data;
}

const GPtrArray *slices_all(const Slices *slices)
{
    return slices->list;
}

const Slice *slices_find(const Slices *slices, const char *uuid)
{
    return g_hash_table_lookup(slices->by_uuid, uuid);
}

const Slice *slices_find_named(const Slices *slices, const char *tenant, const char *name)
{
    for (guint i = 0; *name && i < slices->list->len; i++) {
        const Slice *slice = g_ptr_array_index(slices->list, i);

        if (g_str_equal(slice->name, name) && g_str_equal(slice->tenant, tenant))
            return slice;
    }
    return NULL;
}

const Slice *slices_find_owned(const Slices *slices, const char *owner, const char *part)
{
    for (guint i = 0; i < slices->list->len; i++) {
        const Slice *slice = g_ptr_array_index(slices->list, i);

        if (g_str_equal(slice->owner, owner) && (!part || g_str_equal(slice->part, part)))
            return slice;
    }
    return NULL;
}

gboolean slices_put(Slices *slices, Slice *slice, GError **error)
{
    if (!slice_table_put(host_db(slices->host), slice, error)) {
        slice_free(slice);
        return FALSE;
    }
    put_in(slices, slice);
    return TRUE;
}

gboolean slices_put_all(Slices *slices, const GPtrArray *list, GError **error)
{
    Db *db = host_db(slices->host);
    gboolean stored = db_begin(db, error);

    if (!stored)
        return FALSE;
    for (guint i = 0; stored && i < list->len; i++)
        stored = slice_table_put(db, g_ptr_array_index(list, i), error);
    if (!stored || !db_commit(db, error)) {
        db_rollback(db);
        return FALSE;
    }
    for (guint i = 0; i < list->len; i++)
        put_in(slices, slice_copy(g_ptr_array_index(list, i)));
    return TRUE;
}

/*
 * A failed write is repeated at the next start, because the kernel's state will still be the same.
 */
static void store_slice(Slices *slices, Slice *slice)
{
    g_autoptr(GError) error = NULL;

    if (!slice_table_put(host_db(slices->host), slice, &error))
        g_warning("vGPU %s: %s", slice->uuid, error->message);
    put_in(slices, slice);
}

static gboolean remove_rows(const Slices *slices, const char *uuid, GError **error)
{
    Db *db = host_db(slices->host);

    return suspension_table_remove(db, uuid, error) && slice_table_remove(db, uuid, error);
}

static void leave_out(Slices *slices, const char *uuid)
{
    take_out(slices, uuid);
    tell_change(slices, uuid);
}

gboolean slices_forget(Slices *slices, const char *uuid, GError **error)
{
    Db *db = host_db(slices->host);
    gboolean removed = db_begin(db, error);

    if (removed && !(remove_rows(slices, uuid, error) && db_commit(db, error))) {
        db_rollback(db);
        removed = FALSE;
    }
    if (removed)
        leave_out(slices, uuid);
    else
        g_prefix_error(error,
                       "%s stays in vgpud's ledger; make room in /var/lib/vgpu, then remove it "
                       "again: ",
                       uuid);
    return removed;
}

/* In all that others than vgpud can change. */
static gboolean has_same_attributes(const Slice *a, const Slice *b)
{
    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].attribute && !slice_key_is_same(&slice_keys[i], a, b))
            return FALSE;
    return a->present == b->present && a->defined == b->defined && a->autostart == b->autostart;
}

gboolean slices_are_busy(const Slices *slices, const char *uuid)
{
    return operations_doing(slices->operations, uuid) != NULL;
}

static void write_found(const char *uuid, gboolean by_mdevctl, const char *before)
{
    audit_write_change(by_mdevctl ? AUDIT_BY_MDEVCTL : AUDIT_BY_KERNEL, AUDIT_DO_FIND, AUDIT_SLICE,
                       uuid, before, NULL);
}

/* At the start: what the kernel has is no change. */
static const Slice *with_presence(Slices *slices, const Slice *known, gboolean present)
{
    g_autofree char *uuid = g_strdup(known->uuid);
    Slice *slice;

    if (slices->was_read || known->present == present)
        return known;
    slice = slice_copy(known);
    slice->present = present;
    put_in(slices, slice);
    return slices_find(slices, uuid);
}

/* The operation decides the state of a slice that it works on. */
static void merge_actual(Slices *slices, const Slice *known, const Vgpu *vgpu,
                         const Definition *definition, gboolean ours)
{
    g_autoptr(Slice) slice = slice_copy(known);
    gboolean ready = !slices_are_busy(slices, known->uuid);
    g_autofree char *uuid = NULL;
    g_autofree char *before = NULL;
    gboolean by_mdevctl;

    slice->present = vgpu != NULL;
    slice->defined = definition != NULL;
    slice->autostart = definition && definition->autostart;
    if (vgpu && ready)
        adopt_vgpu(slice, host_root(slices->host), vgpu);
    else if (definition && ready)
        adopt_definition(slice, definition);
    if (slice->class != known->class)
        slice->compute = slices_compute(slices, host_gpu(slices->host, slice->gpu), slice, 0);
    if (has_same_attributes(slice, known))
        return;
    by_mdevctl = slice->defined != known->defined || slice->autostart != known->autostart || !vgpu;
    uuid = g_strdup(known->uuid);
    before = audit_state_of(AUDIT_SLICE, uuid);
    if (ready)
        host_event(slices->host, "vgpu-changed", slice->gpu, slice->uuid, "vGPU %s was changed",
                   slice->uuid);
    store_slice(slices, g_steal_pointer(&slice));
    if (ready && !ours)
        write_found(uuid, by_mdevctl, before);
}

/* A vGPU that was made, or defined, without vgpud: by mdevctl, libvirt or a person. */
static void adopt_found(Slices *slices, const char *uuid, const Vgpu *vgpu,
                        const Definition *definition, gboolean ours)
{
    const Gpu *gpu = vgpu ? host_gpu(slices->host, vgpu->gpu)
                          : host_gpu_of_parent(slices->host, definition->parent);
    const char *type = vgpu ? vgpu->type : definition->type;
    Offer offer = {0};
    gboolean offered = gpu && offers_find(slices->offers, gpu, type, &offer);
    g_autoptr(Slice) slice = NULL;

    /* Without a vGPU nothing shows that it is one of ours. */
    if (!vgpu && !offered)
        return;
    slice = slice_new(uuid, vgpu ? vgpu->gpu : gpu->pci->address, type ? type : "");
    slice->present = vgpu != NULL;
    slice->defined = definition != NULL;
    slice->autostart = definition && definition->autostart;
    slice->class = offered ? offer.class : SLICE_GUARANTEED;
    slice->oversubscribe = offer.oversubscribe;
    if (vgpu) {
        adopt_vgpu(slice, host_root(slices->host), vgpu);
    } else {
        adopt_type(slice, &offer);
        adopt_definition(slice, definition);
    }
    slice->compute = gpu ? slices_compute(slices, gpu, slice, offer.compute) : 0;
    host_event(slices->host, "vgpu-created", slice->gpu, slice->uuid, "vGPU %s was %s on GPU %s",
               slice->uuid, vgpu ? "made" : "defined", slice->gpu);
    store_slice(slices, g_steal_pointer(&slice));
    if (!ours)
        write_found(uuid, definition != NULL, "");
}

/* The kernel has none. Rows that could not be removed are dropped at the next start. */
static void drop_slice(Slices *slices, const Slice *known, gboolean ours)
{
    g_autofree char *uuid = g_strdup(known->uuid);
    g_autofree char *before = audit_state_of(AUDIT_SLICE, uuid);
    gboolean by_mdevctl = known->defined;
    g_autoptr(GError) error = NULL;

    host_event(slices->host, "vgpu-removed", known->gpu, uuid, "vGPU %s was removed", uuid);
    if (!remove_rows(slices, uuid, &error))
        g_warning("vGPU %s: %s", uuid, error->message);
    leave_out(slices, uuid);
    if (!ours)
        write_found(uuid, by_mdevctl, before);
}

/* There is none; any other error says nothing of it. */
static gboolean is_absent(HostRoot *root, const char *path)
{
    struct stat status;

    return !root_stat(root, path, &status) && (errno == ENOENT || errno == ENOTDIR);
}

/*
 * The kernel has it, or its definition is there, and could not be read just now: too many files are
 * open, or mdevctl, which truncates a definition first, is about to write it.
 */
static gboolean is_somewhere(HostRoot *root, const Slice *slice)
{
    g_autofree char *device = mdev_path(slice->uuid);
    g_autofree char *state = g_build_filename(device, "vgpu/state", NULL);
    g_autofree char *definition =
        g_build_filename(DEFINITIONS_DIR, mdevctl_parent(slice->gpu), slice->uuid, NULL);

    return !is_absent(root, state) || !is_absent(root, definition) ||
           definition_exists(root, slice->uuid);
}

/* Of a vGPU that was stopped: nothing that was suspended is left. */
static void end_suspension(Slices *slices, const char *uuid, gboolean ours)
{
    const Slice *known = slices_find(slices, uuid);
    g_autofree char *before = NULL;
    g_autoptr(GError) error = NULL;

    if (!known || !known->suspended)
        return;
    before = audit_state_of(AUDIT_SLICE, uuid);
    if (!slices_set_suspended(slices, uuid, FALSE, &error))
        g_warning("vGPU %s: %s", uuid, error->message);
    else if (!ours)
        audit_write_change(AUDIT_BY_KERNEL, AUDIT_DO_RESUME, AUDIT_SLICE, uuid, before, NULL);
}

/* @ours: an operation has just ended, which the audit has. */
static void reconcile_slice(Slices *slices, const char *uuid, const Vgpu *vgpu,
                            const Definition *definition, gboolean ours)
{
    const Slice *known = slices_find(slices, uuid);
    gboolean ready = !slices_are_busy(slices, uuid);

    /* State that the kernel does not know. */
    if (known && !slice_is_vgpu(known))
        return;
    if (known && ready && !vgpu && !definition && !ours &&
        is_somewhere(host_root(slices->host), known))
        return;
    if (known && ready && !vgpu && !definition)
        drop_slice(slices, known, ours);
    else if (known)
        merge_actual(slices, with_presence(slices, known, vgpu != NULL), vgpu, definition, ours);
    else if (ready && (vgpu || definition))
        adopt_found(slices, uuid, vgpu, definition, ours);
    if (known && ready && !vgpu)
        end_suspension(slices, uuid, ours);
}

static void update_slice(Slices *slices, const char *uuid, gboolean ours)
{
    g_autoptr(Definition) definition = definition_find(host_root(slices->host), uuid);

    reconcile_slice(slices, uuid, vgpu_states_read_one(host_vgpu_states(slices->host), uuid),
                    definition, ours);
}

void slices_update(Slices *slices, const char *uuid)
{
    update_slice(slices, uuid, FALSE);
}

/* State that is not in the database. */
static void mark_slice(Slices *slices, const char *uuid, gboolean reserved, gboolean leaving)
{
    const Slice *known = slices_find(slices, uuid);
    Slice *slice;

    if (!known || (known->reserved == reserved && known->leaving == leaving))
        return;
    slice = slice_copy(known);
    slice->reserved = reserved;
    slice->leaving = leaving;
    put_in(slices, slice);
}

void slices_set_reserved(Slices *slices, const char *uuid)
{
    mark_slice(slices, uuid, TRUE, FALSE);
}

void slices_set_leaving(Slices *slices, const char *uuid)
{
    mark_slice(slices, uuid, FALSE, TRUE);
}

gboolean slices_set_suspended(Slices *slices, const char *uuid, gboolean suspended, GError **error)
{
    const Slice *known = slices_find(slices, uuid);
    Db *db = host_db(slices->host);
    Slice *slice;

    if (!known || known->suspended == suspended)
        return TRUE;
    if (!(suspended ? suspension_table_put(db, uuid, slices->boot, error)
                    : suspension_table_remove(db, uuid, error)))
        return FALSE;
    slice = slice_copy(known);
    slice->suspended = suspended;
    put_in(slices, slice);
    return TRUE;
}

GStrv slices_suspended_before_boot(const Slices *slices)
{
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(GHashTable) boots = suspension_table_read(host_db(slices->host), &error);
    GHashTableIter iter;
    void *uuid, *boot;

    if (!boots) {
        g_warning("%s", error->message);
        return g_strv_builder_end(uuids);
    }
    g_hash_table_iter_init(&iter, boots);
    while (g_hash_table_iter_next(&iter, &uuid, &boot))
        if (!g_str_equal(boot, slices->boot))
            g_strv_builder_add(uuids, uuid);
    return g_strv_builder_end(uuids);
}

/* The operation reports that it was made or removed. */
void slices_settle(Slices *slices, const char *uuid)
{
    const Slice *known = slices_find(slices, uuid);

    if (known && slice_is_vgpu(known)) {
        g_autoptr(Vgpu) vgpu = vgpu_read(host_root(slices->host), uuid);
        Slice *slice = slice_copy(known);

        slice->reserved = FALSE;
        slice->leaving = FALSE;
        slice->present = vgpu != NULL;
        put_in(slices, slice);
    } else if (known) {
        mark_slice(slices, uuid, FALSE, FALSE);
    }
    update_slice(slices, uuid, TRUE);
}

/* The UUIDs of all slices, from all sources. */
static GHashTable *all_uuids(const Slices *slices, GHashTable *definitions)
{
    GHashTable *uuids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_auto(GStrv) present = mdev_list(host_root(slices->host));
    GHashTableIter iter;
    void *uuid;

    for (guint i = 0; present[i]; i++)
        g_hash_table_add(uuids, g_strdup(present[i]));
    for (guint i = 0; i < slices->list->len; i++)
        g_hash_table_add(uuids, g_strdup(((Slice *)g_ptr_array_index(slices->list, i))->uuid));
    g_hash_table_iter_init(&iter, definitions);
    while (g_hash_table_iter_next(&iter, &uuid, NULL))
        g_hash_table_add(uuids, g_strdup(uuid));
    return uuids;
}

/*
 * A directory that cannot be listed now (too many open files, an error of the disk, SELinux) is not
 * empty: with the rows, names, tenants and promises would be lost. One that does not exist is.
 */
static gboolean can_list(HostRoot *root, const char *dir)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = root_list(root, dir, &error);

    if (names || g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        return TRUE;
    g_warning("%s; vGPUs stay as they are known until it can be read", error->message);
    return FALSE;
}

static gboolean sources_can_be_read(HostRoot *root)
{
    g_auto(GStrv) parents = NULL;

    if (!can_list(root, MDEV_DIR) || !can_list(root, DEFINITIONS_DIR))
        return FALSE;
    parents = sysfs_list(root, DEFINITIONS_DIR);
    for (guint i = 0; parents[i]; i++) {
        g_autofree char *dir = g_build_filename(DEFINITIONS_DIR, parents[i], NULL);
        g_autofree char *path = root_path(root, dir, NULL);

        /* Somebody's README is no GPU. */
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            continue;
        if (!can_list(root, dir))
            return FALSE;
    }
    return TRUE;
}

/* In one transaction: a thousand of them would take as long as a thousand writes to disk. */
void slices_refresh(Slices *slices)
{
    g_autoptr(GPtrArray) definitions = definitions_read(host_root(slices->host));
    g_autoptr(GHashTable) defined = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) uuids = NULL;
    VgpuStates *states = host_vgpu_states(slices->host);
    GHashTableIter iter;
    void *uuid;
    g_autoptr(GError) error = NULL;
    gboolean begun;

    vgpu_states_look(states);
    if (!sources_can_be_read(host_root(slices->host)))
        return;
    begun = db_begin(host_db(slices->host), NULL);
    for (guint i = 0; i < definitions->len; i++) {
        Definition *definition = g_ptr_array_index(definitions, i);

        g_hash_table_insert(defined, definition->uuid, definition);
    }
    uuids = all_uuids(slices, defined);
    g_hash_table_iter_init(&iter, uuids);
    while (g_hash_table_iter_next(&iter, &uuid, NULL))
        reconcile_slice(slices, uuid, vgpu_states_known(states, uuid),
                        g_hash_table_lookup(defined, uuid), FALSE);
    slices->was_read = TRUE;
    if (begun && !db_commit(host_db(slices->host), &error)) {
        g_warning("cannot store the slices that were found: %s", error->message);
        db_rollback(host_db(slices->host));
    }
    slices_show_capacity(slices);
}

void slices_show_capacity(const Slices *slices)
{
    const GPtrArray *gpus = host_gpus(slices->host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        VgpuGpu *interface = host_gpu_interface(slices->host, gpu->pci->address);
        guint64 vram;

        if (!interface)
            continue;
        vgpu_gpu_set_capacity(interface, offers_capacity(slices->offers, gpu, &vram));
        show_sums(slices, gpu->pci->address);
    }
}

guint slices_compute(const Slices *slices, const Gpu *gpu, const Slice *slice, guint asked)
{
    guint64 vram;
    guint share;

    if (slice->class == SLICE_BEST_EFFORT)
        return 0;
    if (asked)
        return MIN(asked, slice->cap);
    if (!gpu)
        return slice->compute;
    offers_capacity(slices->offers, gpu, &vram);
    share = vram ? (guint)(slice_resident(slice) * 100 / vram) : 0;
    return CLAMP(share, 1, MAX(slice->cap, 1));
}

static char *or_null(const char *text)
{
    return text && *text ? g_strdup(text) : NULL;
}

static void read_state(const Slices *slices, const Gpu *gpu, Room *room)
{
    VgpuGpu *interface = host_gpu_interface(slices->host, gpu->pci->address);

    room->gone = !interface;
    room->containers_only = gpu->containers_only;
    if (gpu->mode != GPU_MODE_SHARED)
        room->mode = g_strdup(gpu_mode_name(gpu->mode));
    if (!interface)
        return;
    room->switching = or_null(vgpu_gpu_get_switching(interface));
    room->draining = vgpu_gpu_get_draining(interface);
    room->pool = or_null(vgpu_gpu_get_pool(interface));
    if (!vgpu_gpu_get_healthy(interface))
        room->unhealthy = g_strjoinv(", ", (GStrv)vgpu_gpu_get_health_reasons(interface));
}

/* @hours: at: of each hour of the day; NULL: not known. */
static void read_expected(Slice *slice, GVariant *hours)
{
    gsize count = 0;
    const guint64 *bytes = hours ? g_variant_get_fixed_array(hours, &count, sizeof(guint64)) : NULL;

    memset(slice->expected, 0, sizeof(slice->expected));
    if (count == MEMORY_HOURS_OF_DAY)
        memcpy(slice->expected, bytes, sizeof(slice->expected));
}

void slices_set_expected(Slices *slices, GVariant *expected)
{
    for (guint i = 0; i < slices->list->len; i++) {
        Slice *slice = g_ptr_array_index(slices->list, i);
        g_autoptr(GVariant) hours =
            g_variant_lookup_value(expected, slice->uuid, G_VARIANT_TYPE("at"));
        gboolean promised = slice_is_promised(slice);

        if (promised)
            room_subtract(sums_of(slices, slice->gpu), slice);
        read_expected(slice, hours);
        if (promised)
            room_add(sums_of(slices, slice->gpu), slice);
    }
}

void slices_set_displaced(Slices *slices, guint64 most)
{
    slices->displaced_most = most;
}

guint64 slices_displaced(const Slices *slices)
{
    return slices->displaced_most;
}

gboolean slices_have_lent(const Slices *slices, const char *gpu)
{
    for (guint i = 0; i < slices->list->len; i++) {
        const Slice *slice = g_ptr_array_index(slices->list, i);

        if (slice->present && g_str_equal(slice->gpu, gpu) && slice_lent(slice))
            return TRUE;
    }
    return FALSE;
}

/* What sums that grow and shrink do not have, and what is of the whole host. */
static void add_lent(const Slices *slices, Room *room)
{
    Room there = {0}, all = {0};

    for (guint i = 0; i < slices->list->len; i++) {
        const Slice *slice = g_ptr_array_index(slices->list, i);

        if (!slice_is_promised(slice))
            continue;
        room_add(&all, slice);
        if (g_str_equal(slice->gpu, room->gpu))
            room_add(&there, slice);
    }
    memcpy(room->lent, there.lent, sizeof(room->lent));
    room->displaced = all.displaced;
    room->displaced_most = slices->displaced_most;
}

Room *slices_room(const Slices *slices, const Gpu *gpu)
{
    const Room *sums = sums_of(slices, gpu->pci->address);
    const GpuEntry *settings = offers_settings(slices->offers, gpu->pci->address);
    Room *room = g_new0(Room, 1);

    room->gpu = g_strdup(gpu->pci->address);
    room->ids = g_strdup_printf("%04x:%04x", gpu->pci->vendor, gpu->pci->device);
    room->name = g_strdup(gpu->name);
    room->numa_node = gpu->pci->numa_node;
    read_state(slices, gpu, room);
    room->capacity = offers_capacity(slices->offers, gpu, &room->vram);
    room->observed = settings && settings->observed;
    memcpy(room->expected, sums->expected, sizeof(room->expected));
    room->promised_vram = sums->promised_vram;
    room->guaranteed_vram = sums->guaranteed_vram;
    room->promised_compute = sums->promised_compute;
    room->guaranteed_compute = sums->guaranteed_compute;
    room->count = sums->count;
    add_lent(slices, room);
    return room;
}
