/* SPDX-License-Identifier: MIT */
/*
 * Tells when GPUs, their drivers or what is made of them may have changed, by udev's events.
 */
#ifndef VGPUD_HOST_HOTPLUG_H
#define VGPUD_HOST_HOTPLUG_H

#include <glib.h>

typedef struct Hotplug Hotplug;

/*
 * Calls @changed from the main loop, once for events that come close together, and @vgpu_changed at
 * once for each mediated device that comes, changes or goes.
 */
Hotplug *hotplug_new(void (*changed)(void *data),
                     void (*vgpu_changed)(const char *uuid, void *data), void *data,
                     GError **error);

void hotplug_free(Hotplug *hotplug);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hotplug, hotplug_free)

#endif
