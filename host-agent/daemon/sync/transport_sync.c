/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/transport_sync.h"

#include <string.h>

#include "host-agent/daemon/sync/slice_dirs.h"
#include "lib/host_root.h"
#include "lib/pci.h"

#define CONF ".conf"

struct TransportSync {
    Host *host;
    Outputs *outputs;
    const Slices *slices;
    const Tenants *tenants;
    const Claims *claims;
    GuardUnits *units;  /* NULL: not yet */
    GuardStarts starts; /* called with @starts_data */
    void *starts_data;
};

/*
 * Those of its tenant's users that the host knows, and the user of its program or of its owner.
 * @all: there is none of whom the host could not tell yet.
 */
static GArray *uids_of(const TransportSync *link, const Slice *slice, gboolean *all)
{
    GArray *uids = g_array_new(FALSE, FALSE, sizeof(uid_t));
    guint32 owner;

    *all = tenants_add_uids(link->tenants, slice->tenant, uids);
    if (claims_program_user(link->claims, slice->uuid, &owner))
        g_array_append_val(uids, owner);
    if (slice->uid != SLICE_NO_UID) {
        owner = (guint32)slice->uid;
        g_array_append_val(uids, owner);
    }
    return uids;
}

static gboolean is_here(const Slice *slice)
{
    return slice && !slice_is_vgpu(slice);
}

/* Of all slices of the owner: it has one directory. */
static GArray *uids_of_owner(const TransportSync *link, const char *owner)
{
    const GPtrArray *slices = slices_all(link->slices);
    GArray *uids = g_array_new(FALSE, FALSE, sizeof(uid_t));

    for (guint i = 0; i < slices->len; i++) {
        const Slice *other = g_ptr_array_index(slices, i);
        uid_t uid = (uid_t)other->uid;

        if (other->uid != SLICE_NO_UID && g_str_equal(other->owner, owner))
            g_array_append_val(uids, uid);
    }
    return uids;
}

/*
 * Its directories stay as they are until the users are known, but no tenant keeps another's slice
 * for that.
 */
static gboolean want_slice_dirs(Wants *wants, const char *uuid, void *data)
{
    const TransportSync *link = data;
    const Slice *slice = slices_find(link->slices, uuid);
    const char *tenant = outputs_note(link->outputs, &slice_dirs_kind, uuid);
    g_autoptr(GArray) uids = NULL;
    g_autoptr(GArray) of_owner = NULL;
    gboolean all;

    if (!is_here(slice))
        return TRUE;
    uids = uids_of(link, slice, &all);
    if (!all && g_strcmp0(tenant, slice->tenant) == 0)
        return FALSE;
    of_owner = uids_of_owner(link, slice->owner);
    slice_dirs_want(wants, host_root(link->host), slice, uids, of_owner);
    want_note(wants, slice->tenant);
    return TRUE;
}

const OutputKind slice_dirs_kind = {
    .level = G_LOG_LEVEL_WARNING,
    .trouble = {"cannot offer slice ", " to containers"},
    .want = want_slice_dirs,
};

/*
 * What finds NVIDIA's driver behind the CUDA door on the host: programs of a native slice, such as
 * a job's, and workers of a guard or an engine, which see the links of a folder that is there when
 * it starts. FALSE: the GPU is not NVIDIA's.
 */
static gboolean link_cuda(const TransportSync *link, const Slice *slice)
{
    HostRoot *root = host_root(link->host);
    gboolean is_nvidia = nvidia_minor(root, slice->gpu) >= 0;
    g_autoptr(CudaDoor) cuda = is_nvidia ? cuda_door_find(root) : NULL;
    g_autoptr(GError) error = NULL;

    if (cuda && !cuda_door_link(root, cuda, &error))
        g_warning("slice %s has no CUDA: %s", slice->uuid, error->message);
    return is_nvidia;
}

/*
 * Once for a slice: it reads the host's folders of libraries, and vGPUs change all the time. A
 * guard's are made when it starts.
 */
static gboolean want_cuda_links(Wants *wants, const char *uuid, void *data)
{
    const TransportSync *link = data;
    const Slice *slice = slices_find(link->slices, uuid);

    if (slice && slice->transport != SLICE_TRANSPORT_GUARDED)
        want_unit(wants, "");
    return TRUE;
}

static void start_cuda_links(const char *uuid, void *data)
{
    const TransportSync *link = data;

    link_cuda(link, slices_find(link->slices, uuid));
}

const OutputKind cuda_links_kind = {
    .level = G_LOG_LEVEL_WARNING,
    .trouble = {"slice ", " has no CUDA"},
    .want = want_cuda_links,
    .start = start_cuda_links,
};

static char *conf_path(const char *uuid)
{
    return g_strconcat(GUARD_DIR "/", uuid, CONF, NULL);
}

/*
 * The guard keeps its tenant's shaders, which another tenant must not get. Its file says which one
 * that is, so a vgpud that was killed before it could start the guard anew does so later.
 */
static gboolean is_of_another_tenant(const TransportSync *link, const Slice *slice)
{
    g_autofree char *path = conf_path(slice->uuid);
    g_autoptr(GKeyFile) keys = root_read_keys(host_root(link->host), path, G_KEY_FILE_NONE, NULL);
    g_autofree char *tenant = keys ? g_key_file_get_string(keys, "slice", "tenant", NULL) : NULL;

    return tenant && !g_str_equal(tenant, slice->tenant);
}

/* The GPU is available: it is shared, and stays so for its users. */
static gboolean is_served(const TransportSync *link, const Slice *slice)
{
    const Gpu *gpu = host_gpu(link->host, slice->gpu);
    VgpuGpu *interface = host_gpu_interface(link->host, slice->gpu);
    const char *target = interface ? vgpu_gpu_get_switching(interface) : NULL;

    return gpu && gpu->mode == GPU_MODE_SHARED &&
           (!target || !*target || claims_container(link->claims, slice->uuid));
}

static gboolean want_guard(Wants *wants, const char *uuid, void *data)
{
    const TransportSync *link = data;
    const Slice *slice = slices_find(link->slices, uuid);
    g_autofree char *path = conf_path(uuid);
    g_autofree char *text = NULL;

    if (!link->units)
        return FALSE;
    if (!slice || slice->transport != SLICE_TRANSPORT_GUARDED || !is_served(link, slice))
        return TRUE;
    if (is_of_another_tenant(link, slice))
        want_anew(wants);
    text = g_strdup_printf("[slice]\ngpu=%s\ntenant=%s\n", slice->gpu, slice->tenant);
    want_dir(wants, DIR_STAYS, GUARD_DIR, 0755);
    want_file(wants, path, text);
    want_unit(wants, "");
    return TRUE;
}

static void start_guard(const char *uuid, void *data)
{
    const TransportSync *link = data;

    link_cuda(link, slices_find(link->slices, uuid));
    guard_units_start(link->units, uuid);
}

static void stop_guard(const char *uuid, void *data)
{
    const TransportSync *link = data;

    guard_units_stop(link->units, uuid);
}

const OutputKind guard_kind = {
    .level = G_LOG_LEVEL_WARNING,
    .trouble = {"slice ", " has no guard, and containers that ask for it cannot start"},
    .want = want_guard,
    .start = start_guard,
    .stop = stop_guard,
};

static void prepare_all(TransportSync *link)
{
    const GPtrArray *slices = slices_all(link->slices);
    gboolean is_linked = FALSE;

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        outputs_update(link->outputs, &slice_dirs_kind, link, slice->uuid);
        /* Once for all: it reads the host's folders of libraries. */
        if (!is_linked && slice->transport != SLICE_TRANSPORT_GUARDED)
            is_linked = link_cuda(link, slice);
        outputs_update(link->outputs, &guard_kind, link, slice->uuid);
    }
}

void transport_sync_refresh(TransportSync *link)
{
    if (link->units)
        prepare_all(link);
}

/* Directories of a slice that there is are its present tenant's. */
static void find_left_dirs(TransportSync *link)
{
    HostRoot *root = host_root(link->host);
    g_auto(GStrv) uuids = slice_dirs_list(root);

    for (guint i = 0; uuids[i]; i++) {
        const Slice *slice = slices_find(link->slices, uuids[i]);
        Wants *left = outputs_left(link->outputs, &slice_dirs_kind, link, uuids[i]);

        slice_dirs_left(left, root, uuids[i]);
        if (slice)
            want_note(left, slice->tenant);
    }
}

static void find_left_guards(TransportSync *link)
{
    g_auto(GStrv) paths = root_glob(host_root(link->host), GUARD_DIR "/*" CONF);

    for (guint i = 0; paths[i]; i++) {
        g_autofree char *name = g_path_get_basename(paths[i]);
        g_autofree char *uuid = g_strndup(name, strlen(name) - strlen(CONF));
        const Slice *slice = slices_find(link->slices, uuid);
        Wants *left;

        /* One that may be wanted is started, which changes nothing if it runs. */
        if (slice && slice->transport == SLICE_TRANSPORT_GUARDED)
            continue;
        left = outputs_left(link->outputs, &guard_kind, link, uuid);
        want_file(left, paths[i], "");
        want_unit(left, "");
    }
}

static void sweep_left(TransportSync *link)
{
    outputs_update_all(link->outputs, &guard_kind);
    outputs_update_all(link->outputs, &slice_dirs_kind);
}

static void guard_starts(const char *uuid, void *data)
{
    const TransportSync *link = data;

    link->starts(uuid, link->starts_data);
}

static void guard_failed(const char *uuid, const char *why, void *data)
{
    const TransportSync *link = data;

    outputs_failed(link->outputs, &guard_kind, uuid, why);
}

void transport_sync_start(TransportSync *link, GDBusConnection *bus, GuardStarts starts, void *data)
{
    static const GuardFuncs funcs = {guard_starts, guard_failed};

    link->starts = starts;
    link->starts_data = data;
    link->units = guard_units_new(host_root(link->host), bus, &funcs, link);
    find_left_guards(link);
    sweep_left(link);
    transport_sync_refresh(link);
}

TransportSync *transport_sync_new(Host *host, Outputs *outputs, const Slices *slices,
                                  const Tenants *tenants, const Claims *claims)
{
    TransportSync *link = g_new0(TransportSync, 1);

    link->host = host;
    link->outputs = outputs;
    link->slices = slices;
    link->tenants = tenants;
    link->claims = claims;
    find_left_dirs(link);
    return link;
}

void transport_sync_free(TransportSync *link)
{
    g_clear_pointer(&link->units, guard_units_free);
    g_free(link);
}
