/* SPDX-License-Identifier: MIT */
/*
 * Objects of a list, found by the names that people give.
 */
#ifndef VGPUCTL_OBJECTS_H
#define VGPUCTL_OBJECTS_H

#include "host-agent/vgpuctl/listing.h"

/* The object is called so. */
typedef gboolean (*ObjectIs)(GVariant *object, const char *name);

/* By its members Uuid, in any case, and Name. */
gboolean object_is_slice(GVariant *object, const char *name);

/* By its member Name. */
gboolean object_is_named(GVariant *object, const char *name);

/* By its member Id, whole or without the driver's prefix. */
gboolean object_is_type(GVariant *object, const char *name);

/**
 * objects_show() - shows those of @objects that @names name, in their order
 * @objects: of aa{sv}
 * @what, @list_command: for the error, as "vGPU" and "vgpu list"
 *
 * VGPUCTL_NOT_FOUND if one is missing; the others are shown.
 */
gboolean objects_show(const Options *options, const Listing *listing, GVariant *objects,
                      char **names, ObjectIs is, const char *what, const char *list_command,
                      GError **error);

#endif
