/* SPDX-License-Identifier: MIT */
#include "host-agent/model/placement.h"

#include <fnmatch.h>

#include "host-agent/model/slice_keys.h"
#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/tenants_conf.h"

/* What a GPU offers as a type, and what follows for a slice. */

static const char *of_what(const Slice *wanted)
{
    return *wanted->type ? "a vGPU of type " : "a slice of its size";
}

static gboolean refuse_cost(const Slice *wanted, const char *what, guint asked, guint most,
                            GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                "%s %u is at the cost of others: %s%s has %u, and only an administrator can give "
                "it more",
                what, asked, of_what(wanted), wanted->type, most);
    return FALSE;
}

/* A cap of 0 is none. */
static guint looseness_of(guint cap)
{
    return cap ? cap : G_MAXUINT;
}

static gboolean refuse_oversubscription(const Slice *wanted, guint64 most, GError **error)
{
    g_autofree char *asked_size = size_format(wanted->oversubscribe);
    g_autofree char *most_size = size_format(most);

    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                "%s of the host's memory are at the cost of others: %s%s has %s beyond its VRAM, "
                "and only an administrator can give it more",
                asked_size, of_what(wanted), wanted->type, most_size);
    return FALSE;
}

static gboolean refuse_engines(const Slice *wanted, const Slice *before, GError **error)
{
    g_autofree char *asked = engines_format(wanted->engines);
    g_autofree char *most = engines_format(before->engines);

    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                "the engines %s of the GPU are more than it may use: it has %s, and only an "
                "administrator can give it more",
                asked, most);
    return FALSE;
}

static gboolean refuse_unknown(const Slice *wanted, GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                "GPU %s offers no type \"%s\" now, so only an administrator can ask for it; "
                "\"vgpuctl type list\" shows the types",
                wanted->gpu, wanted->type);
    return FALSE;
}

gboolean entitlement_check(const Slice *wanted, const Slice *before, const Offer *offer,
                           GError **error)
{
    guint weight = MAX(offer ? offer->desc->weight : 0, before ? before->weight : 0);
    guint priority = MAX(offer ? offer->desc->priority : 0, before ? before->priority : 0);
    guint64 oversubscribe =
        MAX(offer ? offer->oversubscribe : 0, before ? before->oversubscribe : 0);
    guint cap =
        MAX(offer ? looseness_of(offer->desc->cap) : 0, before ? looseness_of(before->cap) : 0);

    if (!offer && !before)
        return refuse_unknown(wanted, error);
    if (wanted->weight > weight)
        return refuse_cost(wanted, "weight", wanted->weight, weight, error);
    if (wanted->priority > priority)
        return refuse_cost(wanted, "priority", wanted->priority, priority, error);
    if (looseness_of(wanted->cap) > cap)
        return refuse_cost(wanted, "cap", wanted->cap, cap, error);
    if (wanted->oversubscribe > oversubscribe)
        return refuse_oversubscription(wanted, oversubscribe, error);
    if (before && engines_join(wanted->engines, before->engines) != before->engines)
        return refuse_engines(wanted, before, error);
    return TRUE;
}

void adopt_vgpu(Slice *slice, HostRoot *root, const Vgpu *vgpu)
{
    for (guint i = 0; i < slice_keys_count; i++) {
        const char *name = slice_keys[i].attribute;
        g_autofree char *text = name ? sysfs_read(root, vgpu->dir, name) : NULL;

        slice_key_adopt(&slice_keys[i], slice, text);
    }
}

void adopt_type(Slice *slice, const Offer *offer)
{
    slice->vram = offer->desc->vram_bytes;
    slice->weight = offer->desc->weight;
    slice->cap = offer->desc->cap;
    slice->priority = offer->desc->priority;
    slice->display = (int)offer->desc->scanouts;
}

void adopt_definition(Slice *slice, const Definition *definition)
{
    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].attribute)
            slice_key_adopt(&slice_keys[i], slice,
                            g_hash_table_lookup(definition->attributes, slice_keys[i].attribute));
}

Candidate *candidate_new(Room *room, Slice *slice)
{
    Candidate *candidate = g_new0(Candidate, 1);

    candidate->room = room;
    candidate->slice = slice;
    return candidate;
}

void candidate_free(Candidate *candidate)
{
    g_clear_pointer(&candidate->room, room_free);
    g_clear_pointer(&candidate->slice, slice_free);
    g_free(candidate);
}

/**
 * Score - how well a GPU suits; compared member by member, smaller is better
 * @far_node: it is on another NUMA node than requested
 * @distance: sum of distances to the GPUs of the same job
 * @fill: the promised or the free part of it, by the policy
 */
typedef struct {
    gboolean far_node;
    guint64 distance;
    double fill;
} Score;

static gboolean matches_gpu(const GStrv patterns, const Room *room)
{
    for (guint i = 0; patterns && patterns[i]; i++)
        if (!fnmatch(patterns[i], room->gpu, FNM_CASEFOLD) ||
            !fnmatch(patterns[i], room->ids, FNM_CASEFOLD) ||
            !fnmatch(patterns[i], room->name, FNM_CASEFOLD))
            return TRUE;
    return FALSE;
}

static gboolean has_replica(const GPtrArray *slices, const char *gpu, const char *replica)
{
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice_is_promised(slice) && g_str_equal(slice->gpu, gpu) &&
            g_str_equal(slice->replica, replica))
            return TRUE;
    }
    return FALSE;
}

/* The request itself keeps the slice from there. */
static char *choice_refusal(const Placement *placement, const Request *request,
                            const Candidate *candidate, const GPtrArray *chosen)
{
    const Room *room = candidate->room;

    if (request->gpus && request->gpus[0] && !matches_gpu(request->gpus, room))
        return g_strdup("it was not requested");
    if (matches_gpu(request->not_gpus, room))
        return g_strdup("it is excluded");
    if (request->wanted->replica[0] &&
        (has_replica(placement->slices, room->gpu, request->wanted->replica) ||
         has_replica(chosen, room->gpu, request->wanted->replica)))
        return g_strdup_printf("it has a replica of %s already", request->wanted->replica);
    return NULL;
}

static AdmissionRequest admission_of(const Placement *placement, const Candidate *candidate)
{
    return (AdmissionRequest){.way = ADMISSION_CREATE,
                              .room = candidate->room,
                              .tenant = placement->tenant,
                              .wanted = candidate->slice};
}

/*
 * NULL: the slice may go there; else why not. @chosen: the slices placed for this request so far.
 */
static char *refusal_of(const Placement *placement, const Request *request,
                        const Candidate *candidate, const GPtrArray *chosen)
{
    const AdmissionRequest admission = admission_of(placement, candidate);
    char *why = choice_refusal(placement, request, candidate, chosen);

    if (!why)
        why = admission_refusal(&admission);
    if (!why && !candidate->slice)
        why = *request->wanted->type ? g_strdup_printf("it has no type %s", request->wanted->type)
                                     : g_strdup("it has no type with that much memory");
    return why;
}

/* Of a GPU that refuses. */
static gboolean refusal_passes(const Placement *placement, const Request *request,
                               const Candidate *candidate, const GPtrArray *chosen)
{
    const AdmissionRequest admission = admission_of(placement, candidate);
    g_autofree char *why = choice_refusal(placement, request, candidate, chosen);

    return !why && admission_refusal_passes(&admission);
}

static guint64 distance_to(const Placement *placement, const char *gpu, const char *job,
                           const GPtrArray *slices)
{
    guint64 sum = 0;

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice_is_promised(slice) && g_str_equal(slice->job, job))
            sum += placement->distance(gpu, slice->gpu, placement->data);
    }
    return sum;
}

static Score score_of(const Placement *placement, const Request *request,
                      const Candidate *candidate, const GPtrArray *chosen)
{
    const Room *room = candidate->room;
    Score score = {0};

    score.far_node = request->numa_node >= 0 && room->numa_node != request->numa_node;
    if (request->wanted->job[0])
        score.distance =
            distance_to(placement, room->gpu, request->wanted->job, placement->slices) +
            distance_to(placement, room->gpu, request->wanted->job, chosen);
    score.fill = (double)room->promised_vram / (double)MAX(room->capacity, 1);
    if (request->policy == POLICY_BINPACK)
        score.fill = -score.fill;
    return score;
}

static gboolean is_better(const Score *a, const Score *b)
{
    if (a->far_node != b->far_node)
        return b->far_node;
    if (a->distance != b->distance)
        return a->distance < b->distance;
    return a->fill < b->fill;
}

/*
 * The best GPU for one more slice. Choosing the best for each in turn places all of them whenever
 * that is possible: a GPU's number of places does not depend on the other GPUs.
 */
static Candidate *find_best(const Placement *placement, const Request *request,
                            const GPtrArray *chosen)
{
    Candidate *found = NULL;
    Score found_score = {0};

    for (guint i = 0; i < placement->candidates->len; i++) {
        Candidate *candidate = g_ptr_array_index(placement->candidates, i);
        g_autofree char *why = refusal_of(placement, request, candidate, chosen);
        Score score;

        if (why)
            continue;
        score = score_of(placement, request, candidate, chosen);
        if (!found || is_better(&score, &found_score)) {
            found = candidate;
            found_score = score;
        }
    }
    return found;
}

static void explain_refusals(const Placement *placement, const Request *request,
                             const GPtrArray *chosen, GError **error)
{
    g_autoptr(GString) reasons = g_string_new(NULL);
    AgentError code = AGENT_ERROR_NO_ROOM;

    for (guint i = 0; i < placement->candidates->len; i++) {
        const Candidate *candidate = g_ptr_array_index(placement->candidates, i);
        g_autofree char *why = refusal_of(placement, request, candidate, chosen);

        if (refusal_passes(placement, request, candidate, chosen))
            code = AGENT_ERROR_NO_ROOM_NOW;
        g_string_append_printf(reasons, "; %s: %s", candidate->room->gpu,
                               why ? why : "there is room");
    }
    if (!placement->candidates->len)
        g_string_append(reasons, "; this host has no GPU");
    if (request->wanted->transport == SLICE_TRANSPORT_VM ||
        request->wanted->transport == SLICE_TRANSPORT_VFIO)
        g_set_error(error, AGENT_ERROR, code,
                    "there is room for %u of %u vGPUs%s%s, so none was made%s", chosen->len,
                    request->count, *request->wanted->type ? " of type " : "",
                    request->wanted->type, reasons->str);
    else
        g_set_error(error, AGENT_ERROR, code,
                    "there is no room for the slice%s, so it was not made%s",
                    code == AGENT_ERROR_NO_ROOM_NOW ? " now" : "", reasons->str);
}

GPtrArray *placement_find(const Placement *placement, const Request *request, GError **error)
{
    g_autoptr(GPtrArray) chosen = g_ptr_array_new_with_free_func((GDestroyNotify)slice_free);

    for (guint i = 0; i < request->count; i++) {
        Candidate *candidate = find_best(placement, request, chosen);
        Slice *slice;

        if (!candidate) {
            explain_refusals(placement, request, chosen, error);
            return NULL;
        }
        slice = slice_copy(candidate->slice);
        g_free(slice->uuid);
        slice->uuid = g_strdup(request->uuids[i]);
        room_add(candidate->room, slice);
        g_ptr_array_add(chosen, slice);
    }
    return g_steal_pointer(&chosen);
}
