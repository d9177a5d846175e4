/* SPDX-License-Identifier: MIT */
/* Seats of cards that are not cut any more, because the configuration has no [seats] for them. */
#ifndef KUBERNETES_PLUGIN_FORMER_H
#define KUBERNETES_PLUGIN_FORMER_H

#include "fleet/kubernetes/agent.h"
#include "fleet/kubernetes/conf.h"

typedef struct Former Former;

/* Both must outlive it. */
Former *former_new(const KubeConf *conf, Agent *agent);
void former_free(Former *former);

/* The cards that are not cut. @gpus: of AgentGpu. */
void former_set_gpus(Former *former, const GPtrArray *gpus);

/* Gives back what nobody uses. To be called each second. */
void former_check(Former *former);

#endif
