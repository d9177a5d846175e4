/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/host_view.h"

/**
 * HostView
 * @by_uuid: UUID, which is the slice's own, to Known
 * @slices: of Slice, owned by @by_uuid
 */
struct HostView {
    HostRoot *root;
    Db *db;
    Inventory *inventory;
    GPtrArray *gpus;
    Offers *offers;
    Counters *counters;
    ArbiterReports *reports;
    GHashTable *by_uuid;
    GPtrArray *slices;
};

typedef struct {
    Slice *slice;
    SliceUsers users;
} Known;

static void known_free(void *data)
{
    Known *known = data;

    slice_free(known->slice);
    g_free(known->users.container);
    g_free(known->users.containers);
    g_free(known->users.cgroup);
    g_free(known->users.first);
    g_free(known);
}

HostView *host_view_new(HostRoot *root, Db *db)
{
    HostView *view = g_new0(HostView, 1);

    view->root = host_root_ref(root);
    view->db = db;
    view->inventory = inventory_new(root);
    view->gpus = g_ptr_array_new();
    view->offers = offers_new(root);
    view->counters = counters_new(root);
    view->reports = arbiter_reports_new(root, view->counters);
    view->by_uuid = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, known_free);
    view->slices = g_ptr_array_new();
    return view;
}

void host_view_free(HostView *view)
{
    g_ptr_array_unref(view->slices);
    g_hash_table_unref(view->by_uuid);
    arbiter_reports_free(view->reports);
    counters_free(view->counters);
    offers_free(view->offers);
    g_ptr_array_unref(view->gpus);
    inventory_free(view->inventory);
    host_root_unref(view->root);
    g_free(view);
}

static gboolean has_arbiter(const Gpu *gpu)
{
    return gpu && gpu->mode == GPU_MODE_SHARED;
}

void host_view_read_gpus(HostView *view)
{
    g_autoptr(GPtrArray) before = view->gpus;

    view->gpus = inventory_read(view->inventory);
    for (guint i = 0; i < before->len; i++) {
        const Gpu *gpu = g_ptr_array_index(before, i);

        if (has_arbiter(gpu) && !has_arbiter(host_view_gpu(view, gpu->pci->address)))
            arbiter_reports_remove(view->reports, gpu->pci->address);
    }
    for (guint i = 0; i < view->gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(view->gpus, i);

        if (has_arbiter(gpu))
            arbiter_reports_add(view->reports, gpu->pci->address);
    }
}

/* vgpud says what is wrong with the file. */
void host_view_read_offers(HostView *view)
{
    offers_reload(view->offers, NULL);
}

static char *text_or_null(GVariant *told, const char *key)
{
    const char *text = "";

    g_variant_lookup(told, key, "&s", &text);
    return *text ? g_strdup(text) : NULL;
}

static Known *known_new(GVariant *told)
{
    g_autoptr(GVariant) slice = g_variant_lookup_value(told, "Slice", G_VARIANT_TYPE_VARDICT);
    Known *known = g_new0(Known, 1);

    known->slice = slice ? slice_from_dict(slice) : slice_new("", "", "");
    g_variant_lookup(told, "Present", "b", &known->slice->present);
    g_variant_lookup(told, "Reserved", "b", &known->slice->reserved);
    g_variant_lookup(told, "Leaving", "b", &known->slice->leaving);
    g_variant_lookup(told, "Suspended", "b", &known->slice->suspended);
    known->users.container = text_or_null(told, "Container");
    known->users.containers = text_or_null(told, "Containers");
    known->users.cgroup = text_or_null(told, "Cgroup");
    known->users.first = text_or_null(told, "First");
    g_variant_lookup(told, "Claimed", "b", &known->users.claimed);
    if (!known->users.containers)
        known->users.containers = g_strdup("");
    if (!known->users.first)
        known->users.first = g_strdup(known->slice->uuid);
    return known;
}

static void forget_slice(HostView *view, const Known *known)
{
    g_ptr_array_remove(view->slices, known->slice);
    g_hash_table_remove(view->by_uuid, known->slice->uuid);
}

/* It keeps its place: who goes through all of them in parts comes to each once. */
static void put_slice(HostView *view, const Known *before, Known *known)
{
    guint at;

    if (before && g_ptr_array_find(view->slices, before->slice, &at))
        view->slices->pdata[at] = known->slice;
    else
        g_ptr_array_add(view->slices, known->slice);
    /* With its key, which is the slice's own. */
    g_hash_table_replace(view->by_uuid, known->slice->uuid, known);
}

void host_view_set_slice(HostView *view, const char *uuid, GVariant *told)
{
    const Known *before = g_hash_table_lookup(view->by_uuid, uuid);
    Known *known;

    if (!told) {
        if (before)
            forget_slice(view, before);
        return;
    }
    known = known_new(told);
    slice_set_text(&known->slice->uuid, uuid);
    put_slice(view, before, known);
}

void host_view_set_slices(HostView *view, GVariant *told)
{
    GVariantIter iter;
    const char *uuid;
    GVariant *slice;

    g_ptr_array_set_size(view->slices, 0);
    g_hash_table_remove_all(view->by_uuid);
    g_variant_iter_init(&iter, told);
    while (g_variant_iter_loop(&iter, "{&s@a{sv}}", &uuid, &slice))
        host_view_set_slice(view, uuid, slice);
}

HostRoot *host_view_root(const HostView *view)
{
    return view->root;
}

Db *host_view_db(const HostView *view)
{
    return view->db;
}

Offers *host_view_offers(const HostView *view)
{
    return view->offers;
}

Counters *host_view_counters(const HostView *view)
{
    return view->counters;
}

ArbiterReports *host_view_reports(const HostView *view)
{
    return view->reports;
}

const GPtrArray *host_view_gpus(const HostView *view)
{
    return view->gpus;
}

const Gpu *host_view_gpu(const HostView *view, const char *address)
{
    for (guint i = 0; i < view->gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(view->gpus, i);

        if (g_str_equal(gpu->pci->address, address))
            return gpu;
    }
    return NULL;
}

const GPtrArray *host_view_slices(const HostView *view)
{
    return view->slices;
}

const Slice *host_view_slice(const HostView *view, const char *uuid)
{
    const Known *known = g_hash_table_lookup(view->by_uuid, uuid);

    return known ? known->slice : NULL;
}

const SliceUsers *host_view_users(const HostView *view, const char *uuid)
{
    const Known *known = g_hash_table_lookup(view->by_uuid, uuid);

    return known ? &known->users : NULL;
}
