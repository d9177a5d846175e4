/* SPDX-License-Identifier: MIT */
/*
 * Parameters of a vGPU, changed in sysfs while it runs.
 */
#ifndef INVENTORY_VGPU_WRITE_H
#define INVENTORY_VGPU_WRITE_H

#include <glib.h>

/**
 * VgpuWrite - a parameter; written only where @from and @to differ
 * @name: of the attribute, as "vram_bytes"
 */
typedef struct {
    const char *name;
    const char *from;
    const char *to;
} VgpuWrite;

/*
 * All of @list, or none: at one that the driver refuses those before it are put back. @dir: of the
 * attributes (Vgpu). AGENT_ERROR_NO_ROOM, AGENT_ERROR_IN_USE, AGENT_ERROR_FAILED.
 */
gboolean vgpu_write(const char *dir, const VgpuWrite *list, gsize count, GError **error);

#endif
