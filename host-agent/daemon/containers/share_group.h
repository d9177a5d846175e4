/* SPDX-License-Identifier: MIT */
/*
 * Slices of one GPU and tenant that one container uses with transport native: a program sees that
 * GPU once, so they form one share of it, as large as all of them; not if another container uses
 * one of them as well. The arbiter knows it as the first of them, by UUID. In a container with
 * several, the governor's layer uses that one's socket.
 */
#ifndef VGPUD_CONTAINERS_SHARE_GROUP_H
#define VGPUD_CONTAINERS_SHARE_GROUP_H

#include "host-agent/daemon/containers/claims.h"

/* UUID of the slice that represents it: its own if it is alone. Valid as long as that slice. */
const char *share_group_first(const Slices *slices, const Claims *claims, const Slice *slice);

/* A member of it has another class than @slice. */
gboolean share_group_is_mixed(const Slices *slices, const Claims *claims, const Slice *slice);

/* The slice for its arbiter, to be freed; NULL: another slice represents it. */
Slice *share_group_share(const Slices *slices, const Claims *claims, const Slice *slice);

#endif
