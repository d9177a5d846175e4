/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a vGPU's engine, by sysfs alone: vgpud need not be there.
 */
#ifndef INVENTORY_VGPU_READY_H
#define INVENTORY_VGPU_READY_H

#include <gio/gio.h>

/* Engines that are started when the host is busy take some seconds; the driver waits as long when a
 * VM opens one. */
#define VGPU_READY_TIMEOUT_MS 30000

/*
 * Blocks until the engine of vGPU @uuid is ready, or @timeout_ms milliseconds are over.
 * G_IO_ERROR_NOT_FOUND: it is gone; G_IO_ERROR_FAILED: the engine gave up; G_IO_ERROR_TIMED_OUT.
 * The messages say what to do.
 */
gboolean vgpu_wait_ready(const char *root, const char *uuid, guint timeout_ms, GError **error);

#endif
