/* SPDX-License-Identifier: MIT */
/*
 * What is wanted of each GPU: /etc/vgpu/gpus.conf, and what vgpud was told since, /var/lib/vgpu/gpus.conf.
 */
#ifndef LIB_GPUS_H
#define LIB_GPUS_H

#include <glib.h>

#include "lib/units.h"

#define GPUS_CONF "/etc/vgpu/gpus.conf"
/* Only modes and partitions; for its GPUs it goes before GPUS_CONF. Written by vgpud. */
#define GPUS_STATE "/var/lib/vgpu/gpus.conf"
#define GPU_SOFT_PREFIX "soft:"

/* What gpu_name_valid() accepts, for error messages. */
#define GPU_NAME_RULE \
    "a full PCI address in lower case such as 0000:01:00.0 (lspci -D shows them), or soft:NAME"

/* What a GPU is used for. */
typedef enum {
    GPU_MODE_HOST,        /* left alone: the host's programs have it, or nobody */
    GPU_MODE_SHARED,      /* cut into vGPUs */
    GPU_MODE_PASSTHROUGH, /* bound to vfio-pci: a VM has it whole, or may take it */
    GPU_MODE_PARTITIONED, /* has SR-IOV virtual functions, or partitions of its vendor's kind */
} GpuMode;

/* How the time of a shared GPU is divided, in the words that operators know from vendors (vgpu-arbiter(8)). */
typedef enum {
    GPU_POLICY_SHARES,      /* by each vGPU's weight, cap and priority */
    GPU_POLICY_BEST_EFFORT, /* alike among those that have work */
    GPU_POLICY_EQUAL,       /* alike among all that there are, and never more */
    GPU_POLICY_FIXED,       /* by each vGPU's type, and never more */
} GpuPolicy;

/**
 * GpuEntry - a [gpu NAME] group
 * @vram_bytes: 0: to be asked of the hardware
 * @overcommit: how often its memory may be promised; 1: once
 * @partitions: how many are wanted; 0: as many as it can have
 * @policy: how its time is divided
 * @water_mark: free memory that there should be; all 0: nothing was said
 * @pressure_command: what is run where there is less; NULL: nothing
 */
typedef struct {
    char *name;
    GpuMode mode;
    guint64 vram_bytes;
    gdouble overcommit;
    guint partitions;
    GpuPolicy policy;
    Amount water_mark;
    char *pressure_command;
} GpuEntry;

gboolean gpu_name_valid(const char *name);
gboolean gpu_name_is_soft(const char *name);

/* "host", "shared", "passthrough", "partitioned" */
const char *gpu_mode_name(GpuMode mode);

/* "shares", "best-effort", "equal", "fixed" */
const char *gpu_policy_name(GpuPolicy policy);

/* FALSE where @name is none of these. */
gboolean gpu_mode_parse(const char *name, GpuMode *mode);

/*
 * Of GpuEntry, in the order of GPUS_CONF with the modes that GPUS_STATE has for them, then what only
 * GPUS_STATE names; empty where there are no such files.
 */
GPtrArray *gpus_load(const char *root, GError **error);

/* The same, of GPUS_CONF alone and of GPUS_STATE alone. */
GPtrArray *gpus_load_conf(const char *root, GError **error);
GPtrArray *gpus_load_state(const char *root, GError **error);

/* The entry with that name, NULL where there is none. Stays @entries'. */
GpuEntry *gpus_find(const GPtrArray *entries, const char *name);

#endif
