/* SPDX-License-Identifier: MIT */
/* A vGPU that is attached has a window that fits behind the VM's root ports. */
#ifndef VGPUCTL_WINDOW_ROOM_H
#define VGPUCTL_WINDOW_ROOM_H

#include <glib.h>

#include "lib/domain.h"
#include "host-agent/vgpuctl/client.h"
#include "host-agent/vgpuctl/libvirt.h"

/* Bytes of the largest window that fits behind the domain's free root ports; 0: nobody says. */
guint64 window_room(const VmLink *link, const Domain *domain);

/*
 * @dict: a request for a vGPU, whose window becomes no larger than @room. VGPUCTL_NO_ROOM: it has a
 * larger one.
 */
gboolean window_room_fit(GVariantDict *dict, guint64 room, const VmLink *link, GError **error);

/* Says so if the vGPU, the first of @vgpus, has a smaller window than its type. */
void window_room_tell(const Client *client, const VmLink *link, guint64 room, GVariant *vgpus);

#endif
