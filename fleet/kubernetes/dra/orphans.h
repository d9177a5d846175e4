/* SPDX-License-Identifier: MIT */
/*
 * Slices of claims that nobody will undo: the kubelet has lost its notes of them, or was told to
 * forget a pod. They are released if all of this holds for some time:
 *
 * - the kubelet's checkpoint does not name the claim: it will not have it undone;
 * - the API says that nothing of the node is the claim's (claim_is_over());
 * - no container uses the slice.
 *
 * In doubt they stay: "vgpuctl owner release" removes them.
 */
#ifndef KUBERNETES_DRA_ORPHANS_H
#define KUBERNETES_DRA_ORPHANS_H

#include "fleet/kubernetes/agent.h"
#include "fleet/kubernetes/conf.h"
#include "fleet/kubernetes/dra/api.h"

typedef struct Orphans Orphans;

/* Looks by itself from now on. All outlive it. */
Orphans *orphans_new(const KubeConf *conf, Agent *agent, Api *api);
void orphans_free(Orphans *orphans);

#endif
