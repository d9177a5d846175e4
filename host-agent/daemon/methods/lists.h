/* SPDX-License-Identifier: MIT */
/* FindSlices, ListTypes, and the dictionaries of slices in the answers of other methods. */
#ifndef VGPUD_METHODS_LISTS_H
#define VGPUD_METHODS_LISTS_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/slices/slices.h"

/* Those of @uuids, in that order. */
GVariant *list_slices_called(const Host *host, const Slices *slices, const GStrv uuids);

/* Slices, of Slice, that are no vGPUs, or not yet. */
GVariant *list_slices(const GPtrArray *slices);

#endif
