/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/arbiter_sync.h"

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/engines/arbiter.h"
#include "lib/systemd.h"

struct ArbiterSync {
    Host *host;
    Outputs *outputs;
    Offers *offers;
    const Slices *slices;
    const Claims *claims;
    GDBusConnection *bus;
};

static const OutputKind arbiter_kind;

static void ask_systemd(const ArbiterSync *link, const char *method, const char *gpu)
{
    g_autofree char *unit = g_strdup_printf("vgpu-arbiter@%s.service", gpu);

    unit_call(link->bus, method, unit);
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

/* While a file of /etc/vgpu is wrong, an arbiter keeps the policy that it had. To be freed. */
static char *settings_of(const ArbiterSync *link, const char *path, const Gpu *gpu, guint64 vram,
                         gboolean is_known)
{
    const GpuEntry *settings = offers_settings(link->offers, gpu->pci->address);
    char *before = is_known ? NULL : root_read(host_root(link->host), path, NULL);
    guint64 capacity = slices_have_lent(link->slices, gpu->pci->address) ? room_usable(vram) : 0;

    return before ? before
                  : shares_gpu_text(vram, settings ? settings->policy : GPU_POLICY_SHARES, capacity,
                                    slices_displaced(link->slices));
}

static gboolean has_arbiter(const ArbiterSync *link, const char *address)
{
    return outputs_started(link->outputs, &arbiter_kind, address);
}

/*
 * Slices that exist need their arbiter also while the types are not known. On a GPU that is shared
 * work may run even if it has nothing to offer now: its memory is not known.
 */
static gboolean want_arbiter(Wants *wants, const char *address, void *data)
{
    const ArbiterSync *link = data;
    const Gpu *gpu = host_gpu(link->host, address);
    g_autofree char *dir = shares_gpu_dir(address);
    g_autofree char *slices = shares_dir(address);
    g_autofree char *path = shares_gpu_path(address);
    g_autofree char *text = NULL;
    gboolean is_known;
    guint64 vram;

    if (!gpu || gpu->mode != GPU_MODE_SHARED)
        return TRUE;
    is_known = offers_capacity(link->offers, gpu, &vram) > 0;
    if (!is_known && !has_arbiter(link, address) && !has_slices(link, address))
        return TRUE;
    text = settings_of(link, path, gpu, vram, is_known);
    want_dir(wants, DIR_SHARED, dir, 0755);
    want_dir(wants, DIR_SHARED, slices, 0755);
    want_file(wants, path, text);
    want_unit(wants, "");
    return TRUE;
}

static void start_arbiter(const char *gpu, void *data)
{
    ask_systemd(data, "StartUnit", gpu);
}

static void stop_arbiter(const char *gpu, void *data)
{
    ask_systemd(data, "StopUnit", gpu);
}

static const OutputKind arbiter_kind = {
    .level = G_LOG_LEVEL_WARNING,
    .trouble = {"the arbiter of GPU ", " can't be told of its slices"},
    .want = want_arbiter,
    .start = start_arbiter,
    .stop = stop_arbiter,
};

/*
 * A container's slices of one GPU are one share, which the first of them stands for. Notes the GPU,
 * for when the slice is gone.
 */
static gboolean want_share(Wants *wants, const char *uuid, void *data)
{
    const ArbiterSync *link = data;
    const Slice *slice = slices_find(link->slices, uuid);
    const Gpu *gpu = slice ? host_gpu(link->host, slice->gpu) : NULL;
    g_autoptr(Slice) share = NULL;
    g_autofree char *path = NULL, *ungoverned = NULL, *text = NULL;

    if (!slice || !slice->present)
        return TRUE;
    want_note(wants, slice->gpu);
    if (!gpu || gpu->mode != GPU_MODE_SHARED || !has_arbiter(link, slice->gpu))
        return TRUE;
    share = share_group_share(link->slices, link->claims, slice);
    if (!share)
        return TRUE;
    path = shares_slice_path(slice->gpu, uuid);
    ungoverned = shares_ungoverned_path(slice->gpu, uuid);
    text = shares_slice_text(share);
    want_file(wants, path, text);
    want_end_of(wants, ungoverned);
    return TRUE;
}

/* Containers' slices may form, or have formed, one share with the changed one. */
static void update_claimed(ArbiterSync *link, const char *gpu)
{
    const GPtrArray *slices = slices_all(link->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice->transport == SLICE_TRANSPORT_NATIVE && g_str_equal(slice->gpu, gpu) &&
            claims_container(link->claims, slice->uuid))
            outputs_update(link->outputs, &share_kind, link, slice->uuid);
    }
}

static void share_updated(const char *uuid, const char *gpu_before, void *data)
{
    ArbiterSync *link = data;
    const Slice *slice = slices_find(link->slices, uuid);

    if (slice ? !slice_is_vgpu(slice) : gpu_before != NULL)
        update_claimed(link, slice ? slice->gpu : gpu_before);
    /* It may be the first whose memory moves, or the last. */
    if (link->bus && (slice || gpu_before))
        outputs_update(link->outputs, &arbiter_kind, link, slice ? slice->gpu : gpu_before);
}

const OutputKind share_kind = {
    .level = G_LOG_LEVEL_WARNING,
    .trouble = {"the arbiter can't be told of slice ", ""},
    .want = want_share,
    .updated = share_updated,
};

static void update_arbiters(ArbiterSync *link)
{
    const GPtrArray *gpus = host_gpus(link->host);

    outputs_update_all(link->outputs, &arbiter_kind);
    for (guint i = 0; i < gpus->len; i++)
        outputs_update(link->outputs, &arbiter_kind, link,
                       ((const Gpu *)g_ptr_array_index(gpus, i))->pci->address);
}

/* Slices' files go before their folder, and come after it. */
void arbiter_sync_refresh(ArbiterSync *link)
{
    const GPtrArray *slices = slices_all(link->slices);

    if (!link->bus)
        return;
    outputs_update_all(link->outputs, &share_kind);
    update_arbiters(link);
    for (guint i = 0; i < slices->len; i++)
        outputs_update(link->outputs, &share_kind, link,
                       ((const Slice *)g_ptr_array_index(slices, i))->uuid);
}

void arbiter_sync_start_again(ArbiterSync *link)
{
    const GPtrArray *gpus = host_gpus(link->host);

    for (guint i = 0; link->bus && i < gpus->len; i++) {
        const char *address = ((const Gpu *)g_ptr_array_index(gpus, i))->pci->address;

        if (has_arbiter(link, address))
            ask_systemd(link, "StartUnit", address);
    }
}

/* Files of slices of an earlier vgpud. */
static void find_left(ArbiterSync *link)
{
    HostRoot *root = host_root(link->host);
    g_auto(GStrv) gpus = sysfs_list(root, GOVERNOR_DIR);

    for (guint i = 0; gpus[i]; i++) {
        g_auto(GStrv) uuids = shares_list(root, gpus[i]);

        for (guint k = 0; uuids[k]; k++) {
            Wants *left = outputs_left(link->outputs, &share_kind, link, uuids[k]);
            g_autofree char *path = shares_slice_path(gpus[i], uuids[k]);
            g_autofree char *ungoverned = shares_ungoverned_path(gpus[i], uuids[k]);

            want_file(left, path, "");
            want_end_of(left, ungoverned);
        }
    }
}

ArbiterSync *arbiter_sync_new(Host *host, Outputs *outputs, Offers *offers, const Slices *slices,
                              const Claims *claims)
{
    ArbiterSync *link = g_new0(ArbiterSync, 1);

    link->host = host;
    link->outputs = outputs;
    link->offers = offers;
    link->slices = slices;
    link->claims = claims;
    return link;
}

void arbiter_sync_free(ArbiterSync *link)
{
    g_clear_object(&link->bus);
    g_free(link);
}

void arbiter_sync_start(ArbiterSync *link, GDBusConnection *bus)
{
    link->bus = g_object_ref(bus);
    /* Without its arbiter no slice wants a file, and those of running programs would go. */
    update_arbiters(link);
    find_left(link);
    arbiter_sync_refresh(link);
}
