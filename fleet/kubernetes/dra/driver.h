/* SPDX-License-Identifier: MIT */
/*
 * The driver gpu.mdev-vgpu.org for dynamic resource allocation: the kubelet has it prepare the
 * claims of a pod before the pod starts, and undo that when it has ended.
 */
#ifndef KUBERNETES_DRA_DRIVER_H
#define KUBERNETES_DRA_DRIVER_H

#include "fleet/kubernetes/agent.h"
#include "fleet/kubernetes/dra/api.h"

typedef struct Driver Driver;

/* It listens once its cards are known. All of them must outlive it. @conf has an API. */
Driver *driver_new(const KubeConf *conf, Agent *agent, Api *api);
void driver_free(Driver *driver);

/* The cards that are not cut into seats may have changed. @gpus: of AgentGpu. */
void driver_set_gpus(Driver *driver, const GPtrArray *gpus);

/* Listens again if somebody removed a socket. To be called from time to time. */
void driver_check(Driver *driver);

#endif
