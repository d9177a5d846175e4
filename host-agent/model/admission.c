/* SPDX-License-Identifier: MIT */
#include "host-agent/model/admission.h"

#include <fnmatch.h>

#include "lib/bus.h"
#include "lib/gpus.h"
#include "lib/conf.h"

#define ROOM_WHOLE_COMPUTE 100u

/* A GPU's resources, and the promised part of them. */

void room_free(Room *room)
{
    g_free(room->gpu);
    g_free(room->ids);
    g_free(room->name);
    g_free(room->mode);
    g_free(room->switching);
    g_free(room->unhealthy);
    g_free(room->pool);
    g_free(room);
}

guint64 slice_displaced(const Slice *slice)
{
    return slice->class == SLICE_BEST_EFFORT ? 0 : slice_lent(slice);
}

static void add_lent(Room *room, guint64 lent)
{
    if (lent > room->lent[0]) {
        room->lent[1] = room->lent[0];
        room->lent[0] = lent;
    } else {
        room->lent[1] = MAX(room->lent[1], lent);
    }
}

/* Once: then only the largest is right. */
static void subtract_lent(Room *room, guint64 lent)
{
    if (lent == room->lent[0])
        room->lent[0] = room->lent[1];
}

void room_add(Room *room, const Slice *slice)
{
    room->promised_vram += slice_resident(slice);
    for (guint hour = 0; hour < MEMORY_HOURS_OF_DAY; hour++)
        room->expected[hour] += slice_expected(slice, hour);
    room->displaced += slice_displaced(slice);
    add_lent(room, slice_lent(slice));
    room->promised_compute += slice->compute;
    room->count++;
    if (slice->class != SLICE_GUARANTEED)
        return;
    room->guaranteed_vram += slice->vram;
    room->guaranteed_compute += slice->compute;
}

void room_subtract(Room *room, const Slice *slice)
{
    room->promised_vram -= slice_resident(slice);
    for (guint hour = 0; hour < MEMORY_HOURS_OF_DAY; hour++)
        room->expected[hour] -= slice_expected(slice, hour);
    room->displaced -= slice_displaced(slice);
    subtract_lent(room, slice_lent(slice));
    room->promised_compute -= slice->compute;
    room->count--;
    if (slice->class != SLICE_GUARANTEED)
        return;
    room->guaranteed_vram -= slice->vram;
    room->guaranteed_compute -= slice->compute;
}

static char *vram_refusal(guint64 free, guint64 whole, const char *of)
{
    g_autofree char *left = size_format(free);
    g_autofree char *all = size_format(whole);

    return g_strdup_printf("%s of %s%s are free", left, all, of);
}

static guint64 left_of(guint64 whole, guint64 used)
{
    return used < whole ? whole - used : 0;
}

/* The overcommit factor applies to compute as to memory. */
static guint compute_capacity(const Room *room)
{
    if (!room->vram)
        return ROOM_WHOLE_COMPUTE;
    return (guint)((double)ROOM_WHOLE_COMPUTE * (double)room->capacity / (double)room->vram + 0.5);
}

/* Contexts and the driver's own memory need the rest. */
guint64 room_usable(guint64 vram)
{
    return vram - vram / 50;
}

static char *displaced_refusal(const Room *room, const Slice *slice)
{
    guint64 left = left_of(room->displaced_most, room->displaced);
    g_autofree char *needs = size_format(slice_displaced(slice));
    g_autofree char *free = size_format(left);
    g_autofree char *most = size_format(room->displaced_most);

    if (slice_displaced(slice) <= left)
        return NULL;
    return g_strdup_printf("its memory that is not resident needs %s of the host's, and %s of %s "
                           "are free for that (displaced= in vgpud.conf)",
                           needs, free, most);
}

/* Each slice can have all of its memory while the others have what is resident. */
static char *lent_refusal(const Room *room, const Slice *slice)
{
    guint64 pool = left_of(room_usable(room->vram), room->promised_vram + slice_resident(slice));
    guint64 lent = MAX(room->lent[0], slice_lent(slice));
    g_autofree char *needs = size_format(lent);
    g_autofree char *left = size_format(pool);

    if (lent <= pool)
        return slice_lent(slice) ? displaced_refusal(room, slice) : NULL;
    return g_strdup_printf("%s has %s that are not resident, and the resident memory of all slices "
                           "would leave %s for that",
                           lent == slice_lent(slice) ? "it" : "another slice", needs, left);
}

/* Tomorrow is not quite as the days before. */
static guint64 room_observable(guint64 vram)
{
    return vram - vram / 20;
}

static char *expected_refusal(const Room *room, const Slice *slice)
{
    guint64 most = room_observable(room->vram);

    for (guint hour = 0; room->observed && hour < MEMORY_HOURS_OF_DAY; hour++) {
        guint64 left = left_of(most, room->expected[hour]);
        g_autofree char *free = size_format(left), *all = size_format(most);

        if (slice_expected(slice, hour) > left)
            return g_strdup_printf("%s of %s are expected to be free at %02u:00 UTC", free, all,
                                   hour);
    }
    return NULL;
}

/* Of what is promised, which whoever places slices can count, too. */
static char *promise_refusal(const Room *room, const Slice *slice)
{
    gboolean guaranteed = slice->class == SLICE_GUARANTEED;
    guint compute = compute_capacity(room);

    if (slice_resident(slice) > left_of(room->capacity, room->promised_vram))
        return vram_refusal(left_of(room->capacity, room->promised_vram), room->capacity, "");
    if (guaranteed && slice->vram > left_of(room->vram, room->guaranteed_vram))
        return vram_refusal(left_of(room->vram, room->guaranteed_vram), room->vram,
                            " for guaranteed slices");
    if (slice->compute > left_of(compute, room->promised_compute))
        return g_strdup_printf("%" G_GUINT64_FORMAT " %% of its compute are free, of %u %%",
                               left_of(compute, room->promised_compute), compute);
    if (guaranteed && slice->compute > left_of(ROOM_WHOLE_COMPUTE, room->guaranteed_compute))
        return g_strdup_printf("%" G_GUINT64_FORMAT " %% of its compute are free for guaranteed "
                               "slices",
                               left_of(ROOM_WHOLE_COMPUTE, room->guaranteed_compute));
    return expected_refusal(room, slice);
}

char *room_refusal(const Room *room, const Slice *slice)
{
    char *why = promise_refusal(room, slice);

    return why ? why : lent_refusal(room, slice);
}

static gboolean fits_alone(const Room *room, const Slice *slice)
{
    return slice_lent(slice) <= left_of(room_usable(room->vram), slice_resident(slice)) &&
           slice_displaced(slice) <= room->displaced_most;
}

gboolean room_refusal_passes(const Room *room, const Slice *slice)
{
    g_autofree char *why = promise_refusal(room, slice);

    return !why && fits_alone(room, slice);
}

/* Tenants, and their quotas. */

TenantUse tenant_use(const char *tenant, const GPtrArray *slices)
{
    TenantUse use = {0};

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (!g_str_equal(slice->tenant, tenant) || !slice_is_promised(slice))
            continue;
        use.vram += slice->vram;
        use.compute += slice->compute;
        use.vgpus++;
        use.displaced += slice_displaced(slice);
    }
    return use;
}

gboolean tenant_may_use(const Tenant *tenant, const Room *room)
{
    if (!tenant->models || !tenant->models[0])
        return TRUE;
    for (guint i = 0; tenant->models[i]; i++)
        if (!fnmatch(tenant->models[i], room->ids, FNM_CASEFOLD) ||
            !fnmatch(tenant->models[i], room->name, FNM_CASEFOLD))
            return TRUE;
    return FALSE;
}

static gboolean refuse_quota(const Tenant *tenant, const char *would, const char *may,
                             GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_QUOTA,
                "tenant %s would have %s, and may have %s; remove a vGPU of the tenant, or let an "
                "administrator raise the quota with \"vgpuctl tenant set %s\"",
                tenant->name, would, may, tenant->name);
    return FALSE;
}

gboolean tenant_admit(const Tenant *tenant, const TenantUse *use, GError **error)
{
    g_autofree char *would = NULL;
    g_autofree char *may = NULL;

    if (tenant->vram && use->vram > tenant->vram) {
        g_autofree char *bytes = size_format(use->vram);
        g_autofree char *most = size_format(tenant->vram);

        would = g_strconcat(bytes, " of VRAM", NULL);
        return refuse_quota(tenant, would, most, error);
    }
    if (tenant->displaced && use->displaced > tenant->displaced) {
        g_autofree char *bytes = size_format(use->displaced);
        g_autofree char *most = size_format(tenant->displaced);

        would = g_strconcat(bytes, " of the host's memory for what moves", NULL);
        return refuse_quota(tenant, would, most, error);
    }
    if (tenant->compute && use->compute > tenant->compute) {
        would = g_strdup_printf("%u %% of compute", use->compute);
        may = g_strdup_printf("%u %%", tenant->compute);
        return refuse_quota(tenant, would, may, error);
    }
    if (tenant->vgpus && use->vgpus > tenant->vgpus) {
        would = g_strdup_printf("%u vGPUs", use->vgpus);
        may = g_strdup_printf("%u", tenant->vgpus);
        return refuse_quota(tenant, would, may, error);
    }
    return TRUE;
}

/**
 * Rule - the checks of an entry path besides the ledger and the quota
 * @gate: the GPU's mode, a switch of it, a drain
 * @health: of the GPU; and whether best effort was stopped there recently
 * @promised: also if the slice is promised already
 * @model: the tenant's models, if the slice is new
 * @size: whether it is bigger than its GPU, promised or not
 * @always: ledger and quota count even if nothing is promised
 */
typedef struct {
    gboolean gate, health, promised, model, size, always;
} Rule;

static const Rule rules[ADMISSION_WAYS] = {
    [ADMISSION_CREATE] = {.gate = TRUE, .health = TRUE, .model = TRUE},
    [ADMISSION_CHANGE] = {.always = TRUE},
    [ADMISSION_LIVE] = {.model = TRUE, .size = TRUE},
    [ADMISSION_DEFINE] = {.model = TRUE, .size = TRUE},
    [ADMISSION_START] = {.gate = TRUE, .health = TRUE, .model = TRUE, .size = TRUE},
    [ADMISSION_CLAIM] = {.gate = TRUE, .health = TRUE, .promised = TRUE},
};

/* A switch to sharing starts the vGPUs that another mode had stopped. */
static gboolean comes_back(const AdmissionRequest *request)
{
    return request->way == ADMISSION_START && g_strcmp0(request->room->switching, "shared") == 0;
}

/* No vGPU can exist there, whatever the GPU's state. */
static gboolean is_without_driver(const AdmissionRequest *request)
{
    return request->room->containers_only && request->wanted && slice_is_vgpu(request->wanted);
}

/* Why the GPU accepts nothing; NULL: it does. @subject: "it". */
static char *gate_refusal(const AdmissionRequest *request, const char *subject)
{
    const Room *room = request->room;

    if (!rules[request->way].gate || comes_back(request))
        return NULL;
    if (is_without_driver(request))
        return g_strdup(CONTAINERS_ONLY_WHY "; " CONTAINERS_ONLY_ADVICE);
    if (room->gone)
        return g_strdup_printf("%s has just gone", subject);
    if (room->mode)
        return g_strdup_printf("%s is not shared now, but in mode %s", subject, room->mode);
    if (room->switching)
        return g_strdup_printf("%s is being switched to mode %s", subject, room->switching);
    if (room->draining)
        return g_strdup_printf("%s is being drained", subject);
    return NULL;
}

/* Of new slices only: those that are there stay when the GPU gets another pool. */
static char *pool_refusal(const AdmissionRequest *request)
{
    const Slice *wanted = request->wanted;
    const char *of_gpu = request->room->pool ? request->room->pool : GPU_POOL_LOCAL;
    const char *of_slice = wanted && wanted->pool && *wanted->pool ? wanted->pool : GPU_POOL_LOCAL;

    if (!wanted || request->before || g_str_equal(of_gpu, of_slice))
        return NULL;
    return g_strdup_printf("it belongs to pool %s, and the request is of pool %s (\"vgpuctl gpu "
                           "pool\" changes that)",
                           of_gpu, of_slice);
}

/* The GPU's health, and whether best effort has given way there, count for this request. */
static gboolean is_of_health(const AdmissionRequest *request)
{
    const Rule *rule = &rules[request->way];

    return rule->health && !comes_back(request) &&
           (!request->before || !slice_is_promised(request->before) || rule->promised);
}

static char *health_refusal(const AdmissionRequest *request, const char *subject)
{
    const Room *room = request->room;

    if (is_of_health(request) && room->unhealthy)
        return g_strdup_printf("%s is not healthy (%s)", subject, room->unhealthy);
    return NULL;
}

static char *evicted_refusal(const AdmissionRequest *request)
{
    const Slice *wanted = request->wanted;

    if (!is_of_health(request) || !request->room->evicted || !wanted ||
        wanted->class != SLICE_BEST_EFFORT)
        return NULL;
    return g_strdup("best-effort vGPUs of this tenant were stopped there because memory was "
                    "short; wait some minutes");
}

static gboolean is_wrong_model(const AdmissionRequest *request)
{
    return rules[request->way].model && !request->before && request->tenant &&
           !tenant_may_use(request->tenant, request->room);
}

/* AMD's and Intel's. */
static gboolean is_without_cuda(const Room *room)
{
    return g_str_has_prefix(room->ids, "1002:") || g_str_has_prefix(room->ids, "8086:");
}

/* Why that slice's memory cannot move there; NULL: it can, or need not. */
static char *resident_refusal(const Room *room, const Slice *slice)
{
    g_autofree char *resident = size_format(slice->resident);
    g_autofree char *all = size_format(slice->vram);

    if (slice->resident > slice->vram)
        return g_strdup_printf("%s can't be resident of %s", resident, all);
    if (!slice_lent(slice))
        return NULL;
    if (slice->class == SLICE_GUARANTEED)
        return g_strdup("all memory of a guaranteed slice is resident: give it the class burstable "
                        "or best-effort");
    if (slice_is_vgpu(slice))
        return g_strdup("a vGPU's memory does not move, so all of it is resident");
    if (is_without_cuda(room))
        return g_strdup("memory moves only on GPUs with CUDA, so all of it is resident");
    return NULL;
}

/* What does not depend on how much is promised and lent. */
static char *placing_refusal(const AdmissionRequest *request)
{
    char *why = gate_refusal(request, "it");

    if (!why && request->wanted)
        why = resident_refusal(request->room, request->wanted);
    if (!why)
        why = pool_refusal(request);
    if (!why)
        why = health_refusal(request, "it");
    if (!why && is_wrong_model(request))
        why = g_strdup_printf("tenant %s may not use this model", request->tenant->name);
    return why;
}

char *admission_refusal(const AdmissionRequest *request)
{
    char *why = placing_refusal(request);

    if (!why)
        why = evicted_refusal(request);
    if (!why && request->wanted)
        why = room_refusal(request->room, request->wanted);
    return why;
}

gboolean admission_refusal_passes(const AdmissionRequest *request)
{
    g_autofree char *why = placing_refusal(request);

    return !why && request->wanted && room_refusal_passes(request->room, request->wanted);
}

static gboolean refuse_gpu(const AdmissionRequest *request, AgentError code, const char *why,
                           GError **error)
{
    const Slice *wanted = request->wanted;

    if (request->way == ADMISSION_CLAIM)
        g_set_error(error, AGENT_ERROR, code, "cannot use slice %s of GPU %s: %s", wanted->uuid,
                    wanted->gpu, why);
    else
        g_set_error(error, AGENT_ERROR, code, "vGPU %s can't be started: %s%s", wanted->uuid, why,
                    request->room->draining && !request->room->switching
                        ? " (\"vgpuctl gpu resume\" ends that)"
                        : "");
    return FALSE;
}

static gboolean check_gpu(const AdmissionRequest *request, GError **error)
{
    g_autofree char *subject = request->way == ADMISSION_CLAIM
                                   ? g_strdup("the GPU")
                                   : g_strconcat("GPU ", request->room->gpu, NULL);
    g_autofree char *gate = gate_refusal(request, subject);
    g_autofree char *health = gate ? NULL : health_refusal(request, subject);
    g_autofree char *evicted = evicted_refusal(request);

    if (gate || health)
        return refuse_gpu(request, AGENT_ERROR_IN_USE, gate ? gate : health, error);
    return !evicted || refuse_gpu(request, AGENT_ERROR_NO_ROOM_NOW, evicted, error);
}

/* A vGPU that is bigger than its GPU can never start. */
static gboolean check_size(const AdmissionRequest *request, GError **error)
{
    const Slice *wanted = request->wanted;
    g_autofree char *asked = size_format(wanted->vram);
    g_autofree char *most = size_format(request->room->capacity);

    if (!rules[request->way].size || wanted->vram <= request->room->capacity)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NO_ROOM,
                "vGPU %s can't have %s: all vGPUs of GPU %s together have %s", wanted->uuid, asked,
                wanted->gpu, most);
    return FALSE;
}

static gboolean check_resident(const AdmissionRequest *request, GError **error)
{
    const Slice *wanted = request->wanted;
    g_autofree char *why = resident_refusal(request->room, wanted);

    if (!why)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "slice %s can't have that on GPU %s: %s",
                wanted->uuid, wanted->gpu, why);
    return FALSE;
}

static gboolean check_model(const AdmissionRequest *request, GError **error)
{
    if (!is_wrong_model(request))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_QUOTA,
                "vGPU %s can't be tenant %s's on GPU %s: the tenant may not use this model",
                request->wanted->uuid, request->tenant->name, request->wanted->gpu);
    return FALSE;
}

static gboolean is_counted(const AdmissionRequest *request)
{
    return request->before && slice_is_promised(request->before);
}

static gboolean is_more(const AdmissionRequest *request)
{
    const Slice *before = request->before;
    const Slice *wanted = request->wanted;

    return !is_counted(request) || wanted->vram > before->vram ||
           slice_resident(wanted) > slice_resident(before) ||
           slice_lent(wanted) > slice_lent(before) || wanted->compute > before->compute ||
           wanted->class < before->class || !g_str_equal(wanted->tenant, before->tenant);
}

static gboolean check_room(const AdmissionRequest *request, GError **error)
{
    const Slice *wanted = request->wanted;
    Room room = *request->room;
    g_autofree char *why = NULL;
    AgentError code;

    if (is_counted(request))
        room_subtract(&room, request->before);
    why = room_refusal(&room, wanted);
    if (!why)
        return TRUE;
    code = room_refusal_passes(&room, wanted) ? AGENT_ERROR_NO_ROOM_NOW : AGENT_ERROR_NO_ROOM;
    if (is_counted(request))
        g_set_error(error, AGENT_ERROR, code, "cannot change vGPU %s: without it, on GPU %s %s",
                    wanted->uuid, wanted->gpu, why);
    else
        g_set_error(error, AGENT_ERROR, code, "there is no room for vGPU %s: on GPU %s %s",
                    wanted->uuid, wanted->gpu, why);
    return FALSE;
}

static gboolean check_quota(const AdmissionRequest *request, GError **error)
{
    const Slice *before = request->before;
    TenantUse use = request->use;

    if (!request->tenant)
        return TRUE;
    if (is_counted(request) && g_str_equal(before->tenant, request->wanted->tenant)) {
        use.vram -= before->vram;
        use.compute -= before->compute;
        use.vgpus--;
        use.displaced -= slice_displaced(before);
    }
    use.vram += request->wanted->vram;
    use.compute += request->wanted->compute;
    use.vgpus++;
    use.displaced += slice_displaced(request->wanted);
    return tenant_admit(request->tenant, &use, error);
}

gboolean admission_check(const AdmissionRequest *request, GError **error)
{
    if (!check_gpu(request, error) || !check_size(request, error) ||
        !check_resident(request, error) || !check_model(request, error))
        return FALSE;
    if ((!slice_is_promised(request->wanted) && !rules[request->way].always) || !is_more(request))
        return TRUE;
    return check_room(request, error) && check_quota(request, error);
}
