/* SPDX-License-Identifier: MIT */
/*
 * Keeps the node's ResourceSlice in the API as the cards are. It is written only if it differs: a
 * watch tells when somebody else has changed or removed it, as a kubelet does that starts.
 */
#ifndef KUBERNETES_DRA_PUBLISHER_H
#define KUBERNETES_DRA_PUBLISHER_H

#include "fleet/kubernetes/dra/api.h"

typedef struct Publisher Publisher;

/* Nothing is written before the first publisher_set(). */
Publisher *publisher_new(Api *api, const char *node);
void publisher_free(Publisher *publisher);

/* @gpus: of AgentGpu. */
void publisher_set(Publisher *publisher, const GPtrArray *gpus);

#endif
