/* SPDX-License-Identifier: MIT */
/*
 * Types of vGPUs as /etc/vgpu/types.d/ describes them (vgpu-types.conf(5)).
 */
#ifndef REGISTRAR_TYPES_H
#define REGISTRAR_TYPES_H

#include <glib.h>

#include "units.h"

/**
 * GpuType - a [type NAME] group
 * @file: where it was read from
 * @gpus: fnmatch() patterns of the GPUs that offer it; NULL: all
 */
typedef struct {
    char *name;
    char *description;
    char *file;
    Amount vram;
    guint64 window_bytes;
    guint weight;
    guint cap;
    guint priority;
    guint max_instances;
    char **gpus;
} GpuType;

/* All types, in the order of files and groups; of GpuType. One bad value fails all. */
GPtrArray *types_load(const char *root, GError **error);

/* Whether GPU @name ("0000:01:00.0", "soft:a") with @ids ("1002:73bf" or NULL) offers @type. */
gboolean type_matches(const GpuType *type, const char *name, const char *ids);

#endif
