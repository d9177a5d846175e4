/* SPDX-License-Identifier: MIT */
/* The transport to the driver: /dev/vgpu/<uuid>. */
#ifndef ENGINE_DEVICE_H
#define ENGINE_DEVICE_H

#include "transport.h"

#include <glib.h>

/*
 * Both make the file the engine's own, close-on-exec and non-blocking, so that no render worker
 * gets it. device_adopt() takes ownership of @fd. NULL with @error set on failure.
 */
struct vgpu_transport *device_open(const char *path, GError **error);
struct vgpu_transport *device_adopt(int fd, GError **error);

void device_close(struct vgpu_transport *transport);

#endif /* ENGINE_DEVICE_H */
