/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/placing.h"

#include "lib/bus.h"
#include "lib/gpus.h"
#include "lib/vgpu.h"
#include "lib/host_root.h"
#include "lib/mdev.h"
#include "lib/pci.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/model/placement.h"
#include "host-agent/store/tables.h"

static guint or_default(guint value, guint otherwise)
{
    return value ? value : otherwise;
}

static int display_of(const Slice *slice, const Offer *offer, const Request *request)
{
    if (!slice_is_vgpu(slice))
        return -1;
    return request_has(request, "Display") ? request->wanted->display : (int)offer->desc->scanouts;
}

/* 0: the type's. */
static guint64 vram_of(const Gpu *gpu, const Request *request)
{
    return request->vram_percent ? vram_of_percent(gpu->vram, request->vram_percent)
                                 : request->wanted->vram;
}

/* The request's slice on a GPU that has the type. */
static Slice *slice_of(const Host *host, const Slices *slices, const Gpu *gpu, const Offer *offer,
                       const Request *request)
{
    const Slice *asked = request->wanted;
    Slice *slice = slice_copy(asked);
    gboolean has_compute = request_has(request, "Compute");
    guint64 vram = vram_of(gpu, request);

    slice_set_text(&slice->gpu, gpu->pci->address);
    slice_set_text(&slice->type, offer->id);
    slice_set_text(&slice->request, request->uuids[0]);
    if (request->transport_auto)
        slice->transport = host_door_of(host, gpu->pci->address);
    slice->reserved = slice_is_vgpu(slice);
    slice->present = !slice_is_vgpu(slice);
    if (!request_has(request, "Class"))
        slice->class = offer->class;
    slice->vram = vram ? vram : offer->desc->vram_bytes;
    slice->weight = or_default(asked->weight, offer->desc->weight);
    slice->cap = or_default(asked->cap, offer->desc->cap);
    if (!request_has(request, "Priority"))
        slice->priority = offer->desc->priority;
    if (!request_has(request, "Oversubscribe"))
        slice->oversubscribe = offer->oversubscribe;
    slice->display = display_of(slice, offer, request);
    slice->since = *asked->owner ? g_get_real_time() / G_USEC_PER_SEC : 0;
    slice->defined = request->define;
    if (!*asked->owner || !has_compute || asked->compute)
        slice->compute =
            slices_compute(slices, gpu, slice, has_compute ? asked->compute : offer->compute);
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
    return request->wanted->transport == SLICE_TRANSPORT_VM ||
           request->wanted->transport == SLICE_TRANSPORT_VFIO;
}

/* The GPU's offer for the request: a type, or a number of bytes, which a vGPU has a type for. */
static gboolean find_offer(Offers *offers, const Gpu *gpu, const Request *request,
                           struct vgpu_type_desc *desc, Offer *offer)
{
    if (gpu->containers_only && is_for_vgpu(request))
        return FALSE;
    if (*request->wanted->type)
        return offers_find(offers, gpu, request->wanted->type, offer);
    if (is_for_vgpu(request))
        return offers_find_fitting(offers, gpu, vram_of(gpu, request), offer);
    return offers_of_size(offers, gpu, vram_of(gpu, request), desc, offer);
}

static Candidate *candidate_of(const Host *host, Offers *offers, const Slices *slices,
                               const Gpu *gpu, const Request *request)
{
    Candidate *candidate = candidate_new(slices_room(slices, gpu), NULL);
    struct vgpu_type_desc desc;
    Offer offer;

    if (find_offer(offers, gpu, request, &desc, &offer))
        candidate->slice = slice_of(host, slices, gpu, &offer, request);
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
    else if (!*request->wanted->type && is_for_vgpu(request))
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                    "no GPU of this host has a type with that much memory; \"vgpuctl type list\" "
                    "lists the types");
    else if (!*request->wanted->type)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                    "no GPU of this host is shared; \"vgpuctl gpu list\" shows them, and "
                    "\"vgpuctl gpu mode GPU shared\" shares one");
    else
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                    "no GPU of this host has a type \"%s\"; \"vgpuctl type list\" lists the types",
                    request->wanted->type);
}

/* Their room is taken. */
static void add_others(Room *room, const GPtrArray *others)
{
    for (guint i = 0; others && i < others->len; i++) {
        const Slice *slice = g_ptr_array_index(others, i);

        if (g_str_equal(slice->gpu, room->gpu))
            room_add(room, slice);
    }
}

static GPtrArray *all_candidates(const Host *host, Offers *offers, const Slices *slices,
                                 const Request *request, const GPtrArray *others, GError **error)
{
    g_autoptr(GPtrArray) candidates =
        g_ptr_array_new_with_free_func((GDestroyNotify)candidate_free);
    const GPtrArray *gpus = host_gpus(host);
    gboolean known = FALSE;

    for (guint i = 0; i < gpus->len; i++) {
        Candidate *candidate =
            candidate_of(host, offers, slices, g_ptr_array_index(gpus, i), request);

        add_others(candidate->room, others);
        known = known || candidate->slice;
        g_ptr_array_add(candidates, candidate);
    }
    if (known)
        return g_steal_pointer(&candidates);
    set_no_offer(host, request, error);
    return NULL;
}

static guint gpu_distance(const char *gpu, const char *other, void *data)
{
    const Host *host = data;
    const Gpu *from = host_gpu(host, gpu);
    const Gpu *to = host_gpu(host, other);

    return from && to ? host_distance(host, from, to) : G_MAXUINT16;
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
    if (!slices_find_named(slices, request->wanted->tenant, request->wanted->name))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "the name %s is taken; choose another name, or leave it out",
                request->wanted->name);
    return FALSE;
}

/* All that there are, and @others. */
static GPtrArray *with_others(const Slices *slices, const GPtrArray *others)
{
    GPtrArray *all = g_ptr_array_copy((GPtrArray *)slices_all(slices), NULL, NULL);

    g_ptr_array_set_free_func(all, NULL);
    for (guint i = 0; others && i < others->len; i++)
        g_ptr_array_add(all, others->pdata[i]);
    return all;
}

/* None of @others is called so or has that UUID. */
static gboolean check_others(const Request *request, const GPtrArray *others, GError **error)
{
    for (guint i = 0; others && i < others->len; i++) {
        const Slice *slice = g_ptr_array_index(others, i);

        if ((!*request->wanted->name || !g_str_equal(slice->name, request->wanted->name)) &&
            !g_strv_contains((const char *const *)request->uuids, slice->uuid))
            continue;
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "the name %s or the UUID %s is there twice", slice->name, slice->uuid);
        return FALSE;
    }
    return TRUE;
}

/* Another slice that its tenant calls so. */
static gboolean check_name(const Slices *slices, const char *uuid, const char *tenant,
                           const char *name, GError **error)
{
    const Slice *other = slices_find_named(slices, tenant, name);

    if (!other || g_str_equal(other->uuid, uuid))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "cannot name %s so: the name %s is taken; choose another name", uuid, name);
    return FALSE;
}

static void add_use(TenantUse *use, const char *tenant, const GPtrArray *slices)
{
    for (guint i = 0; slices && i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (!g_str_equal(slice->tenant, tenant))
            continue;
        use->vram += slice->vram;
        use->compute += slice->compute;
        use->vgpus++;
        use->displaced += slice_displaced(slice);
    }
}

static gboolean check_quota(const Tenants *tenants, const Request *request, const GPtrArray *chosen,
                            const GPtrArray *others, GError **error)
{
    TenantUse more = {0};

    add_use(&more, request->wanted->tenant, chosen);
    add_use(&more, request->wanted->tenant, others);
    return tenants_admit(tenants, request->wanted->tenant, &more, error);
}

GPtrArray *placing_find(const Host *host, Offers *offers, const Slices *slices,
                        const Tenants *tenants, const Request *request, const GPtrArray *others,
                        GError **error)
{
    g_autoptr(GPtrArray) candidates = NULL;
    g_autoptr(GPtrArray) chosen = NULL;
    g_autoptr(GPtrArray) all = with_others(slices, others);
    const TenantUse nothing = {0};
    Placement placement = {
        .slices = all,
        .tenant = tenants_find(tenants, request->wanted->tenant),
        .distance = gpu_distance,
        .data = (void *)host,
    };

    if (!check_new(slices, request, error) || !check_others(request, others, error) ||
        !check_unused(host, request, error) ||
        !tenants_admit(tenants, request->wanted->tenant, &nothing, error))
        return NULL;
    candidates = all_candidates(host, offers, slices, request, others, error);
    if (!candidates)
        return NULL;
    placement.candidates = candidates;
    chosen = placement_find(&placement, request, error);
    if (!chosen || !check_quota(tenants, request, chosen, others, error))
        return NULL;
    return g_steal_pointer(&chosen);
}

static Slice *changed_slice(const Slices *slices, const Gpu *gpu, const Slice *slice,
                            const Change *change)
{
    Slice *wanted = slice_copy(slice);
    gboolean resized = change_has(change, "Vram") || change->vram_percent ||
                       change_has(change, "Resident") || change_has(change, "Class");
    gboolean has_compute = change_has(change, "Compute");

    change_make(change, wanted);
    wanted->compute = slice->compute;
    if (change->vram_percent && gpu)
        wanted->vram = vram_of_percent(gpu->vram, change->vram_percent);
    /* An engine that has promised nothing counts nothing. */
    if (*slice->owner && !slice->compute && !has_compute)
        return wanted;
    if (has_compute || resized || change_has(change, "Cap"))
        wanted->compute = slices_compute(slices, gpu, wanted,
                                         has_compute ? change->values->compute
                                         : resized   ? 0
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

gboolean placing_admit_resumed(const Host *host, const Slices *slices, const Tenants *tenants,
                               const Slice *slice, GError **error)
{
    g_autoptr(Slice) wanted = slice_copy(slice);

    wanted->suspended = FALSE;
    return placing_admit(host, slices, tenants, ADMISSION_START, slice, wanted, error);
}

static void resume_after_boot(const Host *host, Slices *slices, const Tenants *tenants,
                              const char *uuid)
{
    const Slice *slice = slices_find(slices, uuid);
    g_autofree char *before = audit_state_of(AUDIT_SLICE, uuid);
    g_autoptr(GError) error = NULL;

    if (!slice || slices_are_busy(slices, uuid))
        return;
    if ((slice_is_vgpu(slice) || placing_admit_resumed(host, slices, tenants, slice, &error)) &&
        slices_set_suspended(slices, uuid, FALSE, &error)) {
        audit_write_change(AUDIT_BY_RECOVERY, AUDIT_DO_RESUME, AUDIT_SLICE, uuid, before, NULL);
        g_message("slice %s, whose programs ended with the last boot, is suspended no longer",
                  uuid);
    } else {
        g_message("slice %s, whose programs ended with the last boot, stays suspended: %s; "
                  "\"vgpuctl slice resume %s\" tries again",
                  uuid, error->message, uuid);
    }
}

void placing_resume_after_boot(const Host *host, Slices *slices, const Tenants *tenants)
{
    g_auto(GStrv) uuids = slices_suspended_before_boot(slices);

    for (guint i = 0; uuids[i]; i++)
        resume_after_boot(host, slices, tenants, uuids[i]);
}

Slice *placing_change(const Host *host, const Slices *slices, const Tenants *tenants,
                      const Slice *slice, const Change *change, GError **error)
{
    const Gpu *gpu = host_gpu(host, slice->gpu);
    g_autoptr(Slice) wanted = changed_slice(slices, gpu, slice, change);

    if (!check_name(slices, slice->uuid, wanted->tenant, wanted->name, error) ||
        !placing_admit(host, slices, tenants, ADMISSION_CHANGE, slice, wanted, error))
        return NULL;
    return g_steal_pointer(&wanted);
}

/* A change that mdevctl is about to make to a vGPU. */

static gboolean parse_action(const char *name, CheckAction *action, GError **error)
{
    static const char *const names[] = {
        [CHECK_DEFINE] = "define",
        [CHECK_MODIFY] = "modify",
        [CHECK_START] = "start",
        [CHECK_LIVE] = "live",
    };

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_strcmp0(name, names[i]) == 0) {
            *action = (CheckAction)i;
            return TRUE;
        }
    }
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "Action must be define, modify, start or live, not \"%s\"", name ? name : "");
    return FALSE;
}

void definition_check_clear(DefinitionCheck *check)
{
    g_clear_pointer(&check->values, slice_free);
}

gboolean definition_check_parse(GVariant *options, DefinitionCheck *check, GError **error)
{
    g_autofree char *action = NULL;
    const DictKey keys[] = {
        {"Action", 's', &action, NULL, 0, 0},
        {"Autostart", 'b', &check->autostart, NULL, 0, 0},
        {"Window", 't', &check->window, NULL, 0, 0},
    };

    check->values = slice_new("", "", "");
    if (!dict_read_slice(options, SLICE_KEY_DEFINITION, check->values, &check->given, keys,
                         G_N_ELEMENTS(keys), error))
        return FALSE;
    if (!*check->values->tenant)
        check->given &= ~slice_key_bit(slice_key_find("Tenant"));
    return parse_action(action, &check->action, error);
}

static Slice *slice_of_type(const DefinitionCheck *check, const Gpu *gpu, const Offer *offer)
{
    g_autofree char *uuid = g_ascii_strdown(check->uuid, -1);
    Slice *slice = slice_new(uuid, gpu->pci->address, offer->id);

    slice->class = offer->class;
    slice->oversubscribe = offer->oversubscribe;
    return slice;
}

/* What is not given is unchanged for a running vGPU, and otherwise the type's. */
static void take_type(Slice *wanted, const DefinitionCheck *check, const Offer *offer)
{
    if (check->action == CHECK_LIVE)
        return;
    wanted->vram = offer->desc->vram_bytes;
    wanted->weight = offer->desc->weight;
    wanted->cap = offer->desc->cap;
    wanted->priority = offer->desc->priority;
}

static void take_given(Slice *wanted, const DefinitionCheck *check)
{
    for (guint i = 0; i < slice_keys_count; i++)
        if (check->given & slice_key_bit(&slice_keys[i]))
            slice_key_copy(&slice_keys[i], wanted, check->values);
}

/* The slice as it would be. @before: NULL: it is new. */
static Slice *slice_wanted(const Slices *slices, const Gpu *gpu, const Offer *offer,
                           const Slice *before, const DefinitionCheck *check)
{
    Slice *wanted = before ? slice_copy(before) : slice_of_type(check, gpu, offer);
    guint compute = before ? before->compute : offer->compute;

    take_type(wanted, check, offer);
    take_given(wanted, check);
    if (check->action == CHECK_START)
        wanted->present = TRUE;
    /* What a definition says is for the next start, whether or not the vGPU runs now. */
    if (check->action == CHECK_DEFINE || check->action == CHECK_MODIFY) {
        wanted->present = FALSE;
        wanted->autostart = check->autostart;
    }
    if (before && (before->vram != wanted->vram || before->class != wanted->class))
        compute = 0;
    wanted->compute = slices_compute(slices, gpu, wanted, compute);
    return wanted;
}

/*
 * A definition without automatic start is promised nothing: there may be more of them than there is
 * room.
 */
static gboolean check_wanted(const Host *host, Offers *offers, const Slices *slices,
                             const Tenants *tenants, const Gpu *gpu, const Slice *before,
                             const DefinitionCheck *check, GError **error)
{
    static const AdmissionWay ways[] = {
        [CHECK_DEFINE] = ADMISSION_DEFINE,
        [CHECK_MODIFY] = ADMISSION_DEFINE,
        [CHECK_START] = ADMISSION_START,
        [CHECK_LIVE] = ADMISSION_LIVE,
    };
    g_autoptr(Slice) wanted = NULL;
    Offer offer;

    if (!offers_find(offers, gpu, check->type, &offer))
        return TRUE;
    wanted = slice_wanted(slices, gpu, &offer, before, check);
    if (before && !g_str_equal(before->tenant, wanted->tenant) &&
        !check_name(slices, wanted->uuid, wanted->tenant, wanted->name, error))
        return FALSE;
    return placing_admit(host, slices, tenants, ways[check->action], before, wanted, error);
}

static gboolean check_known(const Slices *slices, const Slice *before, const Gpu *gpu,
                            const DefinitionCheck *check, GError **error)
{
    if (slices_are_busy(slices, before->uuid)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "an operation works on vGPU %s; try again when it is done", check->uuid);
        return FALSE;
    }
    if (!g_str_equal(before->gpu, gpu->pci->address)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "there is a vGPU %s on GPU %s already; choose another UUID", check->uuid,
                    before->gpu);
        return FALSE;
    }
    return TRUE;
}

gboolean definition_check(const Host *host, Offers *offers, const Slices *slices,
                          const Tenants *tenants, const DefinitionCheck *check, GError **error)
{
    g_autofree char *uuid = g_ascii_strdown(check->uuid, -1);
    const Slice *before = slices_find(slices, uuid);
    const Gpu *gpu = host_gpu_of_parent(host, check->parent);

    if (*check->values->tenant && !tenants_check(tenants, check->values->tenant, error))
        return FALSE;
    if (!gpu)
        return TRUE;
    if (before && !check_known(slices, before, gpu, check, error))
        return FALSE;
    /* mdevctl reports an existing one better. */
    if (before && before->present && check->action == CHECK_START)
        return TRUE;
    return check_wanted(host, offers, slices, tenants, gpu, before, check, error);
}
