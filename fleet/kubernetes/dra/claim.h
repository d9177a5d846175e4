/* SPDX-License-Identifier: MIT */
/*
 * A ResourceClaim of resource.k8s.io/v1, as the API gives it: which slices it stands for. Pure.
 * What users wrote into it is checked here, and what the administrator allows is in the
 * DeviceClass.
 */
#ifndef KUBERNETES_DRA_CLAIM_H
#define KUBERNETES_DRA_CLAIM_H

#include "fleet/kubernetes/agent.h"

/* A claim can have no more results. */
#define CLAIM_SLICES_MAX 32

/**
 * ClaimSetting - of this host
 * @pool: the node's
 * @gpus: of AgentGpu
 * @tenant: NULL: none
 * @tenant_is_namespace: instead of @tenant
 */
typedef struct {
    const char *pool;
    const GPtrArray *gpus;
    const char *tenant;
    gboolean tenant_is_namespace;
} ClaimSetting;

/**
 * Claim
 * @uid, @namespace, @name: in the API
 * @pod_claim: what the pod calls it if it was made from a template; else NULL
 * @owner: in vgpud
 * @slices: of AgentSlice, one for each device of ours
 * @requests, @devices, @shares: by the same places: the name of the request, with the alternative
 * that was chosen ("gpu/large"), that of the device, and which share of it this is ("": not said)
 */
typedef struct {
    char *uid;
    char *namespace;
    char *name;
    char *pod_claim;
    char *owner;
    GPtrArray *slices;
    GPtrArray *requests;
    GPtrArray *devices;
    GPtrArray *shares;
} Claim;

/*
 * @text: JSON of @length bytes. @uid: the claim must be this one and no later one of the same name.
 * NULL with G_IO_ERROR, a sentence for the pod's events.
 */
Claim *claim_read(const char *text, gsize length, const char *uid, const ClaimSetting *setting,
                  GError **error);

/*
 * Whether an answer of the API to the reading of a claim says that the one with @uid has nothing of
 * the node @pool any more: it is deleted, another one has its name, or it is not allocated there.
 * Also if a node may not read it because no pod of it has the claim. FALSE in doubt.
 */
gboolean claim_is_over(guint status, const char *text, gsize length, const char *uid,
                       const char *pool);

void claim_free(Claim *claim);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Claim, claim_free)

#endif
