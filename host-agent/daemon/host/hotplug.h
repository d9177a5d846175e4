/* SPDX-License-Identifier: MIT */
/* Reports possible changes of GPUs, their drivers or their devices, from udev's events. */
#ifndef VGPUD_HOST_HOTPLUG_H
#define VGPUD_HOST_HOTPLUG_H

#include <glib.h>

typedef struct Hotplug Hotplug;

/*
 * Calls @changed from the main loop, once for events in quick succession, and @vgpu_changed at once
 * for each mediated device that is added, changed or removed.
 */
Hotplug *hotplug_new(void (*changed)(void *data),
                     void (*vgpu_changed)(const char *uuid, void *data), void *data,
                     GError **error);

void hotplug_free(Hotplug *hotplug);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hotplug, hotplug_free)

#endif
