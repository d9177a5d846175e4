/* SPDX-License-Identifier: MIT */
/*
 * Tells kubelets how the devices are, for the status of the pods that have them (Kubernetes'
 * ResourceHealthStatus). All devices at once when a kubelet asks, at each change, and again before
 * the kubelet takes what it knows for too old.
 */
#ifndef KUBERNETES_DRA_HEALTH_H
#define KUBERNETES_DRA_HEALTH_H

#include "fleet/kubernetes/grpc/session.h"

typedef struct Health Health;

/* @gpus: of AgentGpu, and the node's @pool; both must outlive it. */
Health *health_new(const char *pool, const GPtrArray *gpus);
void health_free(Health *health);

/* A kubelet's call of NodeWatchResources, which never ends by itself. */
void health_add_watcher(Health *health, GrpcCall *call);

/* The devices have changed. */
void health_tell(Health *health);

/* To be called each second. */
void health_check(Health *health);

#endif
