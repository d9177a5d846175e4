/* SPDX-License-Identifier: MIT */
/*
 * What is promised of a GPU, and whether a slice may be on it: the GPU's room, the tenant's quota,
 * and admission.
 */
#ifndef MODEL_ADMISSION_H
#define MODEL_ADMISSION_H

#include "host-agent/model/slice.h"
#include "lib/tenants_conf.h"

/*
 * A GPU's resources, and the promised part of them. The rules of the ledger:
 *
 *   resident VRAM of all slices       <= capacity (the GPU's VRAM times its overcommit factor)
 *   with overcommit=observed, what they are expected to use of that <= 95 % of the GPU's VRAM in
 *   each hour of the day
 *   the rest of each slice's VRAM     <= 98 % of the GPU's VRAM less the resident VRAM of all
 *   that rest of all burstable slices <= the host's memory for it
 *   VRAM of guaranteed slices         <= the GPU's VRAM
 *   compute of all slices             <= 100 % times the overcommit factor
 *   compute of guaranteed slices      <= 100 %
 *
 * The driver enforces the first, whoever creates vGPUs; the agent enforces the others.
 */

/**
 * Room - a GPU in the ledger
 * @gpu: address
 * @ids: "1002:73bf"; "" if it has none
 * @name: for people
 * @numa_node: -1: not known
 * @gone: it has just been removed
 * @mode: its mode; NULL: it is shared
 * @switching: the mode that it is being switched to; NULL: none
 * @unhealthy: the reason; NULL: it is healthy
 * @containers_only: it has no vGPUs, because the kernel module is not loaded
 * @pool: that it belongs to; NULL: GPU_POOL_LOCAL
 * @evicted: best-effort slices of the requesting tenant were stopped there recently
 * @vram: its bytes
 * @capacity: bytes that may be promised
 * @promised_vram: the resident memory of its slices
 * @observed: overcommit=observed; @expected: what its slices use in each hour of the day
 * @lent: the two largest parts of slices' memory that are not resident
 * @displaced: bytes of the host's memory that are reserved for such parts on all GPUs;
 * @displaced_most: that may be
 */
typedef struct {
    char *gpu;
    char *ids;
    char *name;
    int numa_node;
    gboolean gone;
    char *mode;
    char *switching;
    gboolean draining;
    char *unhealthy;
    gboolean containers_only;
    char *pool;
    gboolean evicted;
    guint64 vram;
    guint64 capacity;
    guint64 promised_vram;
    guint64 guaranteed_vram;
    gboolean observed;
    guint64 expected[MEMORY_HOURS_OF_DAY];
    guint64 lent[2];
    guint64 displaced;
    guint64 displaced_most;
    guint promised_compute;
    guint guaranteed_compute;
    guint count;
} Room;

void room_free(Room *room);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Room, room_free)

/* Adds one slice. */
void room_add(Room *room, const Slice *slice);

/* Removes a slice that was added. */
void room_subtract(Room *room, const Slice *slice);

/* What of the host's memory is reserved for the slice's displaced memory. */
guint64 slice_displaced(const Slice *slice);

/* What of the GPU's memory slices can have at one time, if the memory of some moves. */
guint64 room_usable(guint64 vram);

/* NULL: @slice fits; else why not, as "4.0 GiB of 16.0 GiB are free". To be freed. */
char *room_refusal(const Room *room, const Slice *slice);

/*
 * Of a slice that is refused: the promises would fit, and so would what moves if others had less of
 * it. So there is room when they end, and it can be waited for.
 */
gboolean room_refusal_passes(const Room *room, const Slice *slice);

/* Tenants, and their quotas. */

/* A tenant's usage. */
typedef struct {
    guint64 vram;
    guint compute;
    guint vgpus;
    guint64 displaced;
} TenantUse;

/* The sum of the promised slices of @tenant in @slices. */
TenantUse tenant_use(const char *tenant, const GPtrArray *slices);

/* The tenant may have slices on that GPU. */
gboolean tenant_may_use(const Tenant *tenant, const Room *room);

/*
 * @use: including the request. FALSE if it exceeds the quota: AGENT_ERROR_QUOTA, whose message says
 * which quota, how much of it is used, and who can change it.
 */
gboolean tenant_admit(const Tenant *tenant, const TenantUse *use, GError **error);

/*
 * Whether a slice may be on a GPU: the GPU's mode, drains and health, its room, the tenant's models
 * and quota. Every entry path asks here: D-Bus, mdevctl's callout, libvirt's hook, containers'
 * hook, boot. Pure: the request has all of the input.
 */

/* The operation that is about to be done with the slice. */
typedef enum {
    ADMISSION_CREATE, /* CreateSlices: vgpuctl, libvirt's hook */
    ADMISSION_CHANGE, /* SetSlice */
    ADMISSION_LIVE,   /* mdevctl modify --live */
    ADMISSION_DEFINE, /* mdevctl define and modify: needs room only if it is started at boot */
    ADMISSION_START,  /* StartSlice, mdevctl start: vgpuctl, libvirt's hook, boot */
    ADMISSION_CLAIM,  /* ClaimSlice: a container begins */
} AdmissionWay;

#define ADMISSION_WAYS (ADMISSION_CLAIM + 1)

/**
 * AdmissionRequest
 * @room: of the GPU
 * @tenant: of @wanted; NULL: none
 * @use: the tenant's usage, including @before if that is the tenant's
 * @before: the slice as it is; NULL: it is new
 * @wanted: the slice as it would be; NULL: not known yet, and only GPU and models are checked
 */
typedef struct {
    AdmissionWay way;
    const Room *room;
    const Tenant *tenant;
    TenantUse use;
    const Slice *before;
    const Slice *wanted;
} AdmissionRequest;

/*
 * AGENT_ERROR_IN_USE (the GPU accepts nothing now), AGENT_ERROR_NO_ROOM, AGENT_ERROR_NO_ROOM_NOW
 * (it can be waited for), AGENT_ERROR_QUOTA, with a sentence. A slice that is promised already is
 * not refused because of too many promises.
 */
gboolean admission_check(const AdmissionRequest *request, GError **error);

/*
 * The same without the quota, for a list of GPUs: the end of a sentence, as "it is being drained";
 * NULL: admitted. To be freed.
 */
char *admission_refusal(const AdmissionRequest *request);

/*
 * Of a request that is refused: only because of memory that is lent, or was short for best effort,
 * so that it can be waited for.
 */
gboolean admission_refusal_passes(const AdmissionRequest *request);

#endif
