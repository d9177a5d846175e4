/* SPDX-License-Identifier: MIT */
/*
 * What the manager's methods return: a dictionary for each thing, as
 * dbus/org.mdev_vgpu.Host1.xml describes them. Floating, of type aa{sv}.
 */
#ifndef VGPUD_LISTS_H
#define VGPUD_LISTS_H

#include <glib.h>

/* All vGPUs of @root. */
GVariant *list_vgpus(const char *root);

/* All types that @gpus, of Gpu, offer. */
GVariant *list_types(const GPtrArray *gpus);

#endif
