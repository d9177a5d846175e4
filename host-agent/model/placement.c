/* SPDX-License-Identifier: MIT */
#include "host-agent/model/placement.h"

#include <fnmatch.h>
#include <string.h>

#include "host-agent/model/admission.h"
#include "lib/bus.h"
#include "lib/units.h"

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

static gboolean matches(const GStrv patterns, const Room *room)
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

/*
 * NULL: the slice may go there; else why not. @chosen: the slices placed for this request so far.
 */
static char *refusal(const Placement *placement, const Request *request,
                     const Candidate *candidate, const GPtrArray *chosen)
{
    const Room *room = candidate->room;
    char *why;

    if (request->gpus && request->gpus[0] && !matches(request->gpus, room))
        return g_strdup("it was not requested");
    if (matches(request->not_gpus, room))
        return g_strdup("it is excluded");
    if (request->replica[0] && (has_replica(placement->slices, room->gpu, request->replica) ||
                                has_replica(chosen, room->gpu, request->replica)))
        return g_strdup_printf("it has a replica of %s already", request->replica);
    why = admission_refusal(&(AdmissionRequest){.way = ADMISSION_CREATE,
                                                .room = room,
                                                .tenant = placement->tenant,
                                                .wanted = candidate->slice});
    if (!why && !candidate->slice)
        why = g_strdup_printf("it has no type %s", request->type);
    return why;
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
    if (request->job[0])
        score.distance = distance_to(placement, room->gpu, request->job, placement->slices) +
                         distance_to(placement, room->gpu, request->job, chosen);
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
static Candidate *best(const Placement *placement, const Request *request, const GPtrArray *chosen)
{
    Candidate *found = NULL;
    Score found_score = {0};

    for (guint i = 0; i < placement->candidates->len; i++) {
        Candidate *candidate = g_ptr_array_index(placement->candidates, i);
        g_autofree char *why = refusal(placement, request, candidate, chosen);
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

static void explain(const Placement *placement, const Request *request, const GPtrArray *chosen,
                    GError **error)
{
    g_autoptr(GString) reasons = g_string_new(NULL);

    for (guint i = 0; i < placement->candidates->len; i++) {
        const Candidate *candidate = g_ptr_array_index(placement->candidates, i);
        g_autofree char *why = refusal(placement, request, candidate, chosen);

        g_string_append_printf(reasons, "; %s: %s", candidate->room->gpu,
                               why ? why : "there is room");
    }
    if (!placement->candidates->len)
        g_string_append(reasons, "; this host has no GPU");
    if (request->transport == SLICE_TRANSPORT_VM || request->transport == SLICE_TRANSPORT_VFIO)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NO_ROOM,
                    "there is room for %u of %u vGPUs of type %s, so none was made%s", chosen->len,
                    request->count, request->type, reasons->str);
    else
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NO_ROOM,
                    "there is no room for the slice, so it was not made%s", reasons->str);
}

static void free_slice(void *slice)
{
    slice_free(slice);
}

GPtrArray *placement_find(const Placement *placement, const Request *request, GError **error)
{
    g_autoptr(GPtrArray) chosen = g_ptr_array_new_with_free_func(free_slice);

    for (guint i = 0; i < request->count; i++) {
        Candidate *candidate = best(placement, request, chosen);
        Slice *slice;

        if (!candidate) {
            explain(placement, request, chosen, error);
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
