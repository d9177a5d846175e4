/* SPDX-License-Identifier: MIT */
/*
 * Types of vGPUs as /etc/vgpu/types.d/ describes them (vgpu-types.conf(5)).
 */
#ifndef LIB_TYPES_H
#define LIB_TYPES_H

#include <glib.h>

#include "lib/host_root.h"
#include "lib/conf.h"

#define TYPE_MEMORY_INFINITY G_MAXUINT64

/* Whether vGPUs of a type offer CUDA. Where it is not given: on GPUs of NVIDIA's driver. */
typedef enum {
    TYPE_CUDA_WHERE_POSSIBLE,
    TYPE_CUDA_YES,
    TYPE_CUDA_NO,
} TypeCuda;

/**
 * GpuType - a [type NAME] group
 * @file: where it was read from
 * @gpus: fnmatch() patterns of the GPUs that offer it; NULL: all
 * @class: how firm the promise is: "guaranteed", "burstable" or "best-effort"; for the host agent
 * @window_bytes: 0: not given
 * @display: 1: its vGPUs have a display
 * @compute: promised per cent of the GPU, 1 to 100; 0: not given; for the host agent
 * @oversubscribe: host memory that may replace GPU memory beyond @vram, parts are of @vram; for the
 * host agent
 * @cpu: processor time of the engine, per cent of one; 0: not given; for the host agent
 * @memory: host memory of the engine in bytes; 0: not given; TYPE_MEMORY_INFINITY: no limit; for
 * the host agent
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
    guint display;
    TypeCuda cuda;
    guint max_instances;
    char **gpus;
    char *class;
    guint compute;
    Amount oversubscribe;
    guint cpu;
    guint64 memory;
} GpuType;

/* All types, in the order of files and groups; of GpuType. One invalid value fails all. */
GPtrArray *types_load(HostRoot *root, GError **error);

/* Whether vGPUs of @type offer CUDA on a GPU at @driver (NULL: none). */
gboolean type_has_cuda(const GpuType *type, const char *driver);

/* The size of their window there, in bytes. */
guint64 type_window(const GpuType *type, const char *driver);

/* Whether GPU @name ("0000:01:00.0", "soft:a") with @ids ("1002:73bf" or NULL) offers @type. */
gboolean type_matches(const GpuType *type, const char *name, const char *ids);

#endif
