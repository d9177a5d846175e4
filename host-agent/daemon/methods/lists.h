/* SPDX-License-Identifier: MIT */
/* ListSlices, ListTypes, ListNames, ListVms, and the dictionaries of vGPUs and slices. */
#ifndef VGPUD_METHODS_LISTS_H
#define VGPUD_METHODS_LISTS_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

/* All vGPUs by UUID; with @user only those of its tenants. */
GVariant *list_vgpus(const Host *host, const Slices *slices, const Tenants *tenants,
                     const char *user);

/* The same in the form of ListVgpusShort: of type a(ssssstss). */
GVariant *list_vgpus_short(Counters *counters, const Slices *slices, const Tenants *tenants,
                           const char *user);

/* Those of @uuids, in that order. */
GVariant *list_vgpus_called(const Host *host, const Slices *slices, const GStrv uuids);

/* Containers' slices in the form of ListSlices; with @user only those of its tenants. */
GVariant *list_container_slices(const Host *host, const Slices *slices, const Tenants *tenants,
                                const Claims *claims, const char *user);

/* Slices, of Slice, that are no vGPUs, or not yet. */
GVariant *list_slices(const GPtrArray *slices);

#endif
