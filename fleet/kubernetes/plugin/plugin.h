/* SPDX-License-Identifier: MIT */
/*
 * One resource of the kubelet's device plugin API: the seats of all cards of a model. A seat is a
 * slice that exists as long as its card is cut, so that it is promised to nobody else, and the
 * API needs no call to give it back.
 */
#ifndef KUBERNETES_PLUGIN_PLUGIN_H
#define KUBERNETES_PLUGIN_PLUGIN_H

#include "fleet/kubernetes/agent.h"
#include "fleet/kubernetes/conf.h"
#include "fleet/kubernetes/http/http.h"

typedef struct Plugin Plugin;

/* All of them must outlive it; @seats is one of @conf. */
Plugin *plugin_new(const KubeConf *conf, const Seats *seats, Agent *agent, Http *http);
void plugin_free(Plugin *plugin);

/* The cards of its model. @gpus: of AgentGpu. */
void plugin_set_gpus(Plugin *plugin, const GPtrArray *gpus);

/*
 * Looks whether the kubelet was restarted, and what failed before is tried again. To be called each
 * second: the kubelet's folder may be removed and made again, which a watch of it would not
 * survive.
 */
void plugin_check(Plugin *plugin);

#endif
