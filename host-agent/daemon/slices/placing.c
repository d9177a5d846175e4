/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/placing.h"

#include "host-agent/model/placement.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "lib/containers_only.h"
#include "lib/definition.h"
#include "lib/host_root.h"
#include "lib/mdev.h"
#include "lib/pci.h"

static void free_candidate(void *candidate)
{
    candidate_free(candidate);
}

static guint or_default(guint value, guint otherwise)
{
    return value ? value : otherwise;
}

static int display_of(const Slice *slice, const Offer *offer, const Request *request)
{
    if (!slice_is_vgpu(slice))
        return -1;
    return (int)(request->display_given ? request->display : offer->desc->scanouts);
}

/* The request's slice on a GPU that has the type. */
static Slice *slice_of(const Slices *slices, const Gpu *gpu, const Offer *offer,
                       const Request *request)
{
    Slice *slice = slice_new(NULL, gpu->pci->address, offer->id);

    slice->transport = request->transport;
    slice_set_text(&slice->name, request->name);
    slice->ephemeral = request->ephemeral;
    slice->reserved = slice_is_vgpu(slice);
    slice->present = !slice_is_vgpu(slice);
    slice_set_text(&slice->request, request->uuids[0]);
    slice_set_text(&slice->tenant, request->tenant);
    slice->class = request->class_given ? request->class : offer->class;
    slice->vram = request->vram ? request->vram : offer->desc->vram_bytes;
    slice->weight = or_default(request->weight, offer->desc->weight);
    slice->cap = or_default(request->cap, offer->desc->cap);
    slice->priority = request->priority_given ? request->priority : offer->desc->priority;
    slice->oversubscribe =
        request->oversubscribe_given ? request->oversubscribe : offer->oversubscribe;
    slice->display = display_of(slice, offer, request);
    slice->engines = request->engines;
    slice_set_text(&slice->job, request->job);
    slice_set_text(&slice->replica, request->replica);
    slice_set_text(&slice->domain, request->domain);
    slice->defined = request->define;
    slice->autostart = request->autostart;
    slice->compute = slices_compute(slices, gpu, slice,
                                    request->compute_given ? request->compute : offer->compute);
    return slice;
}

/* Best effort was stopped there recently, because memory was short. */
static gboolean is_evicted(const Host *host, const char *gpu, const Slice *slice)
{
    return slice->class == SLICE_BEST_EFFORT &&
           gpu_table_is_evicted(host_db(host), gpu, slice->tenant,
                                g_get_real_time() / G_USEC_PER_SEC);
}

static gboolean is_for_vgpu(const Request *request)
{
    return request->transport == SLICE_TRANSPORT_VM ||
           request->transport == SLICE_TRANSPORT_VFIO;
}

/* The GPU's offer for the request: a type, or a number of bytes. */
static gboolean find_offer(Offers *offers, const Gpu *gpu, const Request *request,
                           struct vgpu_type_desc *desc, Offer *offer)
{
    if (gpu->containers_only && is_for_vgpu(request))
        return FALSE;
    return *request->type ? offers_find(offers, gpu, request->type, offer)
                          : offers_of_size(offers, gpu, request->vram, desc, offer);
}

static Candidate *candidate_of(const Host *host, Offers *offers, const Slices *slices,
                               const Gpu *gpu, const Request *request)
{
    Candidate *candidate = candidate_new(slices_room(slices, gpu), NULL);
    struct vgpu_type_desc desc;
    Offer offer;

    if (find_offer(offers, gpu, request, &desc, &offer))
        candidate->slice = slice_of(slices, gpu, &offer, request);
    candidate->room->evicted =
        candidate->slice && is_evicted(host, gpu->pci->address, candidate->slice);
    return candidate;
}

static gboolean any_for_containers_only(const Host *host)
{
    const GPtrArray *gpus = host_gpus(host);

    for (guint i = 0; i < gpus->len; i++)
        if (((const Gpu *)g_ptr_array_index(gpus, i))->containers_only)
            return TRUE;
    return FALSE;
}

/* No GPU can fulfil the request, even if it is empty. */
static void set_no_offer(const Host *host, const Request *request, GError **error)
{
    if (is_for_vgpu(request) && any_for_containers_only(host))
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                    "cannot make a vGPU: " CONTAINERS_ONLY_WHY "; " CONTAINERS_ONLY_ADVICE);
    else if (!*request->type)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                    "no GPU of this host is shared; \"vgpuctl gpu list\" shows them, and "
                    "\"vgpuctl gpu mode GPU shared\" shares one");
    else
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                    "no GPU of this host has a type \"%s\"; \"vgpuctl type list\" lists the types",
                    request->type);
}

static GPtrArray *all_candidates(const Host *host, Offers *offers, const Slices *slices,
                                 const Request *request, GError **error)
{
    g_autoptr(GPtrArray) candidates = g_ptr_array_new_with_free_func(free_candidate);
    const GPtrArray *gpus = host_gpus(host);
    gboolean known = FALSE;

    for (guint i = 0; i < gpus->len; i++) {
        Candidate *candidate =
            candidate_of(host, offers, slices, g_ptr_array_index(gpus, i), request);

        known = known || candidate->slice;
        g_ptr_array_add(candidates, candidate);
    }
    if (known)
        return g_steal_pointer(&candidates);
    set_no_offer(host, request, error);
    return NULL;
}

static guint distance(const char *gpu, const char *other, void *data)
{
    const Host *host = data;
    const Gpu *from = host_gpu(host, gpu);
    const Gpu *to = host_gpu(host, other);

    return from && to ? topology_distance(from->pci, to->pci) : DISTANCE_SYS;
}

/* A mediated device or a definition of any driver has it. */
static gboolean is_used(const Host *host, const char *uuid)
{
    HostRoot *root = host_root(host);
    g_autofree char *device = mdev_path(uuid);

    return root_is(root, device, G_FILE_TEST_IS_SYMLINK) || definition_exists(root, uuid);
}

static gboolean check_unused(const Host *host, const Request *request, GError **error)
{
    for (guint i = 0; i < request->count; i++) {
        if (!is_used(host, request->uuids[i]))
            continue;
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "the UUID %s is in use already (\"mdevctl list\" and \"mdevctl list "
                    "--defined\" show by "
                    "what); choose another one, or leave it out",
                    request->uuids[i]);
        return FALSE;
    }
    return TRUE;
}

static gboolean check_new(const Slices *slices, const Request *request, GError **error)
{
    for (guint i = 0; i < request->count; i++) {
        if (!slices_find(slices, request->uuids[i]))
            continue;
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "there is a vGPU %s already; choose another UUID, or leave it out",
                    request->uuids[i]);
        return FALSE;
    }
    if (!*request->name || !slices_find_called(slices, request->name))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "the name %s is taken; choose another name, or leave it out", request->name);
    return FALSE;
}

/* Another slice that is called so. */
static gboolean check_name(const Slices *slices, const Slice *slice, const Change *change,
                           GError **error)
{
    const Slice *other =
        change->name && *change->name ? slices_find_called(slices, change->name) : NULL;

    if (!other || g_str_equal(other->uuid, slice->uuid))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "cannot name %s so: the name %s is taken; choose another name", slice->uuid,
                change->name);
    return FALSE;
}

static gboolean check_quota(const Tenants *tenants, const Request *request, const GPtrArray *chosen,
                            GError **error)
{
    TenantUse more = {0};

    for (guint i = 0; i < chosen->len; i++) {
        const Slice *slice = g_ptr_array_index(chosen, i);

        more.vram += slice->vram;
        more.compute += slice->compute;
        more.vgpus++;
    }
    return tenants_admit(tenants, request->tenant, &more, error);
}

GPtrArray *placing_find(const Host *host, Offers *offers, const Slices *slices,
                        const Tenants *tenants, const Request *request, GError **error)
{
    g_autoptr(GPtrArray) candidates = NULL;
    g_autoptr(GPtrArray) chosen = NULL;
    const TenantUse nothing = {0};
    Placement placement = {
        .slices = slices_all(slices),
        .tenant = tenants_find(tenants, request->tenant),
        .distance = distance,
        .data = (void *)host,
    };

    if (!check_new(slices, request, error) || !check_unused(host, request, error) ||
        !tenants_admit(tenants, request->tenant, &nothing, error))
        return NULL;
    candidates = all_candidates(host, offers, slices, request, error);
    if (!candidates)
        return NULL;
    placement.candidates = candidates;
    chosen = placement_find(&placement, request, error);
    if (!chosen || !check_quota(tenants, request, chosen, error))
        return NULL;
    return g_steal_pointer(&chosen);
}

static Slice *changed(const Slices *slices, const Gpu *gpu, const Slice *slice,
                      const Change *change)
{
    Slice *wanted = slice_copy(slice);
    gboolean resized = change->vram_given || change->class_given;

    if (change->vram_given)
        wanted->vram = change->vram;
    if (change->weight_given)
        wanted->weight = change->weight;
    if (change->cap_given)
        wanted->cap = change->cap;
    if (change->priority_given)
        wanted->priority = change->priority;
    if (change->oversubscribe_given)
        wanted->oversubscribe = change->oversubscribe;
    if (change->display_given)
        wanted->display = (int)change->display;
    if (change->engines_given)
        wanted->engines = change->engines;
    if (change->class_given)
        wanted->class = change->class;
    if (change->tenant) {
        g_free(wanted->tenant);
        wanted->tenant = g_strdup(change->tenant);
    }
    if (change->name) {
        g_free(wanted->name);
        wanted->name = g_strdup(change->name);
    }
    if (change->compute_given || resized || change->cap_given)
        wanted->compute = slices_compute(slices, gpu, wanted,
                                         change->compute_given ? change->compute
                                         : resized             ? 0
                                                               : wanted->compute);
    return wanted;
}

/* A slice without promises needs no check. */
static gboolean find_tenant(const Tenants *tenants, const Slice *before, const Slice *wanted,
                            const Tenant **tenant, GError **error)
{
    gboolean same =
        before && slice_is_promised(before) && g_str_equal(before->tenant, wanted->tenant);

    *tenant = *wanted->tenant ? tenants_find(tenants, wanted->tenant) : NULL;
    return *tenant || !*wanted->tenant || same || !slice_is_promised(wanted) ||
           tenants_check(tenants, wanted->tenant, error);
}

gboolean placing_admit(const Host *host, const Slices *slices, const Tenants *tenants,
                       AdmissionWay way, const Slice *before, const Slice *wanted, GError **error)
{
    const Gpu *gpu = host_gpu(host, wanted->gpu);
    AdmissionRequest request = {.way = way, .before = before, .wanted = wanted};
    g_autoptr(Room) room = NULL;

    if (!gpu) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND, "GPU %s of %s %s is missing",
                    wanted->gpu, slice_is_vgpu(wanted) ? "vGPU" : "slice", wanted->uuid);
        return FALSE;
    }
    if (!find_tenant(tenants, before, wanted, &request.tenant, error))
        return FALSE;
    room = slices_room(slices, gpu);
    room->evicted = is_evicted(host, room->gpu, wanted);
    request.room = room;
    if (request.tenant)
        request.use = tenant_use(request.tenant->name, slices_all(slices));
    return admission_check(&request, error);
}

Slice *placing_change(const Host *host, const Slices *slices, const Tenants *tenants,
                      const Slice *slice, const Change *change, GError **error)
{
    const Gpu *gpu = host_gpu(host, slice->gpu);
    g_autoptr(Slice) wanted = NULL;

    if (!check_name(slices, slice, change, error))
        return NULL;
    wanted = changed(slices, gpu, slice, change);
    if (!placing_admit(host, slices, tenants, ADMISSION_CHANGE, slice, wanted, error))
        return NULL;
    return g_steal_pointer(&wanted);
}
