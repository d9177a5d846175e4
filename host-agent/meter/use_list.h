/* SPDX-License-Identifier: MIT */
/* What slices use of their GPUs, in the members of FindSlices. */
#ifndef METER_USE_LIST_H
#define METER_USE_LIST_H

#include "host-agent/meter/host_view.h"

/* a{sa{sv}}, by UUID, of all slices of which something is known. Reads the counters. Floating. */
GVariant *use_list(const HostView *view);

#endif
