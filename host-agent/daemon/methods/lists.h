/* SPDX-License-Identifier: MIT */
/* ListSlices, ListTypes, ListNames, ListVms, and the dictionaries of vGPUs and slices. */
#ifndef VGPUD_METHODS_LISTS_H
#define VGPUD_METHODS_LISTS_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

/* All vGPUs in the form of ListVgpusShort: of type a(ssssstss). */
GVariant *list_vgpus_short(VgpuStates *states, const Slices *slices, const Tenants *tenants,
                           const char *user);

/* Those of @uuids, in that order. */
GVariant *list_vgpus_called(const Host *host, const Slices *slices, const GStrv uuids);

/* Slices, of Slice, that are no vGPUs, or not yet. */
GVariant *list_slices(const GPtrArray *slices);

#endif
