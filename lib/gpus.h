/* SPDX-License-Identifier: MIT */
/*
 * The GPUs that are declared or were set by command, and those that are shared with containers
 * only.
 */
#ifndef LIB_GPUS_H
#define LIB_GPUS_H

#include <glib.h>

#include "lib/conf.h"
#include "lib/gpu_name.h"
#include "lib/host_root.h"

#define GPUS_CONF "/etc/vgpu/gpus.conf"
/* Only modes and partitions; it has precedence over GPUS_CONF for its GPUs. Written by vgpud. */
#define GPUS_STATE "/var/lib/vgpu/gpus.conf"

/* What a GPU is used for. */
typedef enum {
    GPU_MODE_HOST,        /* left to the host's programs */
    GPU_MODE_SHARED,      /* divided into vGPUs */
    GPU_MODE_PASSTHROUGH, /* bound to vfio-pci: for one VM, as a whole */
    GPU_MODE_PARTITIONED, /* has SR-IOV virtual functions, or its vendor's kind of partitions */
} GpuMode;

/*
 * How the time of a shared GPU is divided, in the words that operators know from vendors
 * (vgpu-arbiter(8)).
 */
typedef enum {
    GPU_POLICY_SHARES,      /* by each vGPU's weight, cap and priority */
    GPU_POLICY_BEST_EFFORT, /* equally among those that have work */
    GPU_POLICY_EQUAL,       /* equally among all vGPUs, never more */
    GPU_POLICY_FIXED,       /* by each vGPU's type, never more */
} GpuPolicy;

/*
 * Which engine places work on a GPU. A GPU belongs to one of them at a time, so that no engine
 * promises what another has promised already.
 */
#define GPU_POOL_LOCAL "local"
#define GPU_POOL_RULE  "local, slurm or kubernetes"
gboolean gpu_pool_valid(const char *name);

/* What may be found about a GPU. The rules are vgpud's (model/gpu_health.h). */
typedef enum {
    HEALTH_GONE,           /* it was present, slices were promised of it, and it is missing */
    HEALTH_AER_FATAL,      /* held: a fatal error on its link */
    HEALTH_AER_NONFATAL,   /* an uncorrected error on its link */
    HEALTH_AER_CORRECTED,  /* many corrected errors on its link */
    HEALTH_LINK,           /* fewer lanes than possible */
    HEALTH_TEMPERATURE,    /* too hot */
    HEALTH_ECC,            /* held: an uncorrectable error in its memory */
    HEALTH_ENGINE_CRASHES, /* held: engines of several tenants die repeatedly, and none lives */
    HEALTH_ENGINE_FAILED,  /* engines of several tenants gave up, and none lives */
    HEALTH_KINDS,
} HealthKind;

/* "aer-fatal" */
const char *health_kind_name(HealthKind kind);

/* FALSE if @name is none of these. */
gboolean health_kind_parse(const char *name, HealthKind *kind);

/**
 * GpuEntry - a [gpu NAME] group
 * @name: also of one that was declared by its card's number, while this host has the card
 * @vram_bytes: 0: read from the hardware
 * @overcommit: how often its memory may be promised; 1: once
 * @observed: that often, if what slices have used leaves room
 * @partitions: desired number; 0: as many as it can have
 * @policy: how its time is divided
 * @pool: which engine places work on it; NULL: not given
 * @water_mark: desired free memory; all 0: not given
 * @pressure_command: run if less is free; NULL: none
 * @health_ignore: bit 1 << HealthKind: such findings are reported, and close nothing
 */
typedef struct {
    char *name;
    GpuMode mode;
    guint64 vram_bytes;
    gdouble overcommit;
    gboolean observed;
    guint partitions;
    GpuPolicy policy;
    char *pool;
    Amount water_mark;
    char *pressure_command;
    guint health_ignore;
} GpuEntry;

/* "host", "shared", "passthrough", "partitioned" */
const char *gpu_mode_name(GpuMode mode);

/* "shares", "best-effort", "equal", "fixed" */
const char *gpu_policy_name(GpuPolicy policy);

/* FALSE if @name is none of these. */
gboolean gpu_mode_parse(const char *name, GpuMode *mode);

/*
 * Of GpuEntry, in the order of GPUS_CONF with the modes of GPUS_STATE, then the GPUs that only
 * GPUS_STATE names; empty if there are no such files.
 */
GPtrArray *gpus_load(HostRoot *root, GError **error);

/* The same, of GPUS_CONF alone and of GPUS_STATE alone. */
GPtrArray *gpus_load_conf(HostRoot *root, GError **error);
GPtrArray *gpus_load_state(HostRoot *root, GError **error);

/* The entry with that name; NULL: none. @entries keeps it. */
GpuEntry *gpus_find(const GPtrArray *entries, const char *name);

/*
 * GPUs that are shared without the kernel module mdev_vgpu: with containers and jobs, but not with
 * VMs. The kernel does not record this, so a file for each of them in /run does until the next
 * boot.
 */

/* Why a VM gets no vGPU, and what to do. */
#define CONTAINERS_ONLY_WHY                                                                        \
    "the kernel module mdev_vgpu is not loaded, so this host shares its GPUs with containers "     \
    "and jobs only"
#define CONTAINERS_ONLY_ADVICE "install the package mdev-vgpu, then \"modprobe mdev_vgpu\""

/* @gpu: its address. */
gboolean containers_only_is(HostRoot *root, const char *gpu);

/* Errors are GLib's, of files. */
gboolean containers_only_set(HostRoot *root, const char *gpu, GError **error);

/* A GPU that is not shared in this way is no error. */
void containers_only_clear(HostRoot *root, const char *gpu);

#endif
