/* SPDX-License-Identifier: MIT */
/* The transport that is the driver: /dev/vgpu/<uuid>. */
#ifndef ENGINE_DEVICE_H
#define ENGINE_DEVICE_H

#include "transport.h"

#include <glib.h>

/*
 * Both take a file that is to be the engine's from then on, close-on-exec and non-blocking, so that
 * no render worker gets it. device_adopt() takes ownership of @fd. NULL with @error set on failure.
 */
struct vgpu_transport *device_open(const char *path, GError **error);
struct vgpu_transport *device_adopt(int fd, GError **error);

void device_close(struct vgpu_transport *transport);

#endif /* ENGINE_DEVICE_H */
