/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/arbiter_sync.h"

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/engines/arbiter.h"
#include "lib/systemd.h"

struct ArbiterSync {
    Host *host;
    Offers *offers;
    const Slices *slices;
    const Claims *claims;
    GDBusConnection *bus;
    ArbiterReports *reports;
    GHashTable *served; /* addresses of GPUs whose arbiter was started */
    GHashTable *homes;  /* UUID of a slice to its GPU's address */
};

static void ask_systemd(const ArbiterSync *link, const char *method, const char *gpu)
{
    g_autofree char *unit = g_strdup_printf("vgpu-arbiter@%s.service", gpu);

    unit_call(link->bus, method, unit);
}

static void note_home(ArbiterSync *link, const Slice *slice)
{
    g_hash_table_insert(link->homes, g_strdup(slice->uuid), g_strdup(slice->gpu));
}

/* All slices in the form for the arbiters. */
static GPtrArray *shares_of_all(const ArbiterSync *link)
{
    const GPtrArray *slices = slices_all(link->slices);
    GPtrArray *shares = g_ptr_array_new_with_free_func((GDestroyNotify)slice_free);

    for (guint i = 0; i < slices->len; i++) {
        Slice *share = share_group_share(link->slices, link->claims, g_ptr_array_index(slices, i));

        if (share)
            g_ptr_array_add(shares, share);
    }
    return shares;
}

static gboolean was_told(HostRoot *root, const char *address)
{
    g_autofree char *path = g_build_filename(GOVERNOR_DIR, address, "gpu.conf", NULL);

    return root_has(root, path);
}

/* While a file of /etc/vgpu is wrong, an arbiter keeps the policy that it had. */
static void tell(const ArbiterSync *link, const Gpu *gpu)
{
    const char *address = gpu->pci->address;
    HostRoot *root = host_root(link->host);
    const GpuEntry *settings = offers_settings(link->offers, address);
    g_autoptr(GPtrArray) shares = shares_of_all(link);
    g_autoptr(GError) error = NULL;
    guint64 vram;

    if (!offers_capacity(link->offers, gpu, &vram) && was_told(root, address))
        return;
    if (!shares_sync(root, address, vram, settings ? settings->policy : GPU_POLICY_SHARES, shares,
                     &error))
        g_warning("the arbiter of GPU %s can't be told of its slices: %s", address, error->message);
}

static void serve(ArbiterSync *link, const Gpu *gpu)
{
    const char *address = gpu->pci->address;
    const GPtrArray *slices = slices_all(link->slices);

    tell(link, gpu);
    for (guint i = 0; i < slices->len; i++)
        note_home(link, g_ptr_array_index(slices, i));
    if (!g_hash_table_add(link->served, g_strdup(address)))
        return;
    arbiter_reports_add(link->reports, address);
    ask_systemd(link, "StartUnit", address);
}

static gboolean has_slices(const ArbiterSync *link, const char *address)
{
    const GPtrArray *slices = slices_all(link->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice->present && g_str_equal(slice->gpu, address))
            return TRUE;
    }
    return FALSE;
}

/* Slices that exist need their arbiter also while the types are not known. */
static gboolean needs_arbiter(const ArbiterSync *link, const Gpu *gpu)
{
    guint64 vram;

    return gpu->mode == GPU_MODE_SHARED &&
           (offers_capacity(link->offers, gpu, &vram) > 0 || has_slices(link, gpu->pci->address));
}

/* Work may run on a shared GPU even if it has nothing to offer now: its memory is not known. */
static gboolean leave_unshared(void *address, void *value, void *data)
{
    ArbiterSync *link = data;
    const Gpu *gpu = host_gpu(link->host, address);

    (void)value;
    if (gpu && gpu->mode == GPU_MODE_SHARED)
        return FALSE;
    ask_systemd(link, "StopUnit", address);
    shares_drop(host_root(link->host), address);
    arbiter_reports_remove(link->reports, address);
    return TRUE;
}

void arbiter_sync_refresh(ArbiterSync *link)
{
    const GPtrArray *gpus = host_gpus(link->host);

    if (!link->bus)
        return;
    g_hash_table_foreach_remove(link->served, leave_unshared, link);
    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (needs_arbiter(link, gpu))
            serve(link, gpu);
    }
}

void arbiter_sync_start_again(ArbiterSync *link)
{
    GHashTableIter iter;
    void *address;

    g_hash_table_iter_init(&iter, link->served);
    while (link->bus && g_hash_table_iter_next(&iter, &address, NULL))
        ask_systemd(link, "StartUnit", address);
}

static void put(const ArbiterSync *link, const Slice *slice)
{
    g_autoptr(Slice) share = share_group_share(link->slices, link->claims, slice);
    HostRoot *root = host_root(link->host);
    g_autoptr(GError) error = NULL;

    if (!share)
        shares_forget(root, slice->gpu, slice->uuid);
    else if (!shares_put(root, share, &error))
        g_warning("the arbiter of GPU %s can't be told of vGPU %s: %s", slice->gpu, slice->uuid,
                  error->message);
}

/* Containers' slices may form, or have formed, one share with the changed one. */
static void put_claimed(const ArbiterSync *link, const char *gpu)
{
    const GPtrArray *slices = slices_all(link->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice->transport == SLICE_TRANSPORT_NATIVE && g_str_equal(slice->gpu, gpu) &&
            claims_container(link->claims, slice->uuid))
            put(link, slice);
    }
}

void arbiter_sync_update(ArbiterSync *link, const char *uuid)
{
    const Slice *slice = slices_find(link->slices, uuid);
    g_autofree char *home = g_strdup(g_hash_table_lookup(link->homes, uuid));
    const char *gpu = slice ? slice->gpu : home;

    if (slice && slice->present) {
        if (g_hash_table_contains(link->served, slice->gpu))
            put(link, slice);
        note_home(link, slice);
    } else if (home) {
        shares_forget(host_root(link->host), home, uuid);
        g_hash_table_remove(link->homes, uuid);
    }
    if (gpu && g_hash_table_contains(link->served, gpu) && (!slice || !slice_is_vgpu(slice)))
        put_claimed(link, gpu);
}

ArbiterSync *arbiter_sync_new(Host *host, Offers *offers, const Slices *slices,
                              const Claims *claims, ArbiterReports *reports)
{
    ArbiterSync *link = g_new0(ArbiterSync, 1);

    link->host = host;
    link->offers = offers;
    link->slices = slices;
    link->claims = claims;
    link->reports = reports;
    link->served = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    link->homes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return link;
}

void arbiter_sync_free(ArbiterSync *link)
{
    g_clear_object(&link->bus);
    g_hash_table_unref(link->served);
    g_hash_table_unref(link->homes);
    g_free(link);
}

void arbiter_sync_start(ArbiterSync *link, GDBusConnection *bus)
{
    link->bus = g_object_ref(bus);
    arbiter_sync_refresh(link);
}
