/* SPDX-License-Identifier: MIT */
/* Allocate of the device plugin API: what the containers of a pod need to use their seats. */
#ifndef KUBERNETES_PLUGIN_ALLOCATE_H
#define KUBERNETES_PLUGIN_ALLOCATE_H

#include "fleet/kubernetes/grpc/session.h"
#include "fleet/kubernetes/plugin/card.h"
#include "deviceplugin.pb-c.h"

/*
 * Answers @call, at once or later. @cards: of Card, which must live as long as @agent. vgpud is
 * asked again for the seats of each card, because somebody may have removed one.
 */
void seats_allocate(GrpcCall *call, const V1beta1__AllocateRequest *request, const GPtrArray *cards,
                    const KubeConf *conf, Agent *agent);

#endif
