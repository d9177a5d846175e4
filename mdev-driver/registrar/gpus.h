/* SPDX-License-Identifier: MIT */
/*
 * /etc/vgpu/gpus.conf: which GPUs are shared out.
 */
#ifndef REGISTRAR_GPUS_H
#define REGISTRAR_GPUS_H

#include <glib.h>

#define GPUS_CONF "/etc/vgpu/gpus.conf"
#define GPU_SOFT_PREFIX "soft:"

/* What gpu_name_valid() accepts, for error messages. */
#define GPU_NAME_RULE \
    "a full PCI address in lower case such as 0000:01:00.0 (lspci -D shows them), or soft:NAME"

/**
 * GpuEntry - a [gpu NAME] group
 * @shared: mode=shared
 * @vram_bytes: 0: to be asked of the hardware
 */
typedef struct {
    char *name;
    gboolean shared;
    guint64 vram_bytes;
} GpuEntry;

gboolean gpu_name_valid(const char *name);
gboolean gpu_name_is_soft(const char *name);

/* Of GpuEntry, in the order of the file; empty where there is no file. */
GPtrArray *gpus_load(const char *root, GError **error);

#endif
