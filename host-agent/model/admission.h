/* SPDX-License-Identifier: MIT */
/*
 * Whether a slice may be on a GPU: the GPU's mode, drains and health, its room, the tenant's models
 * and quota. Every way in asks here: D-Bus, mdevctl's callout, libvirt's hook, containers' hook,
 * boot. Pure: all that counts is in the request.
 */
#ifndef MODEL_ADMISSION_H
#define MODEL_ADMISSION_H

#include "host-agent/model/room.h"
#include "host-agent/model/tenant.h"

/* What is about to be done with the slice. */
typedef enum {
    ADMISSION_CREATE, /* CreateVgpus, CreateSlice: vgpuctl, libvirt's hook */
    ADMISSION_CHANGE, /* SetVgpu, SetSlice */
    ADMISSION_LIVE,   /* mdevctl modify --live */
    ADMISSION_DEFINE, /* mdevctl define and modify: room only if it is started at boot */
    ADMISSION_START,  /* StartVgpu, mdevctl start: vgpuctl, libvirt's hook, boot */
    ADMISSION_CLAIM,  /* ClaimSlice: a container begins */
} AdmissionWay;

#define ADMISSION_WAYS (ADMISSION_CLAIM + 1)

/**
 * AdmissionRequest
 * @room: of the GPU
 * @tenant: of @wanted; NULL: nobody
 * @use: what the tenant has, with @before if that is the tenant's
 * @before: the slice as it is; NULL: it is new
 * @wanted: as it would be; NULL: not known yet, and only GPU and models are asked about
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
 * AGENT_ERROR_IN_USE (the GPU takes nothing now), AGENT_ERROR_NO_ROOM, AGENT_ERROR_QUOTA, with a
 * sentence. What was promised already is not refused because promises have become too many.
 */
gboolean admission_check(const AdmissionRequest *request, GError **error);

/*
 * The same without the quota, for a list of GPUs: the end of a sentence, as "it is being drained";
 * NULL: nothing is against it. To be freed.
 */
char *admission_refusal(const AdmissionRequest *request);

#endif
