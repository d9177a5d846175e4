/* SPDX-License-Identifier: MIT */
/* The limits of engines' and guards' cgroups. */
#ifndef VGPUD_SYNC_LIMITS_H
#define VGPUD_SYNC_LIMITS_H

#include "lib/host_root.h"
#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/sync/outputs.h"
#include "host-agent/model/slice.h"

/*
 * Host resources that the engine of a vGPU, or the guard of a container's slice, may use, enforced
 * by its cgroup: processor time and memory. Set as systemd's properties of its unit, so that
 * systemd and the kernel always agree.
 */

#define LIMIT_NONE G_MAXUINT64

/*
 * What an engine may need besides its guest's GPU memory: itself, shader compilation, and a render
 * worker for each of the guest's contexts, of which there are 128 at most. A guard needs as much
 * for 64 clients.
 */
#define ENGINE_OWN_MEMORY (G_GUINT64_CONSTANT(4) << 30)

/**
 * EngineLimits
 * @cpu_us: processor time in microseconds per second; LIMIT_NONE: no limit
 * @memory: bytes; LIMIT_NONE: no limit
 * @weight: share of processor time under contention with other engines, equal to the vGPU's share
 * of its GPU
 */
typedef struct {
    guint64 cpu_us;
    guint64 memory;
    guint weight;
} EngineLimits;

/*
 * Of a slice whose type has @cpu and @memory (GpuType). Without a memory limit in the type, the
 * engine may use its vGPU's memory as host memory, as it does on a GPU without its own memory, its
 * oversubscription, and ENGINE_OWN_MEMORY. That is more than a computing guest needs, and less than
 * all.
 */
EngineLimits engine_limits_of(const Slice *slice, guint cpu, guint64 memory);

/* The unit's default: no limits. */
gboolean engine_limits_are_none(const EngineLimits *limits);

/*
 * Limits of engines' host resources, and of their GPUs if the kernel enforces them: sent to
 * systemd, which manages their cgroups. systemd stores them with the units, so restarted engines
 * have them, even without vgpud, until the vGPU is removed (vgpu-engine-user).
 */

typedef struct LimitsSync LimitsSync;

/* All live longer. */
LimitsSync *limits_sync_new(Host *host, Outputs *outputs, Offers *offers, const Slices *slices,
                            const Claims *claims);

/* Pending calls are dropped. */
void limits_sync_free(LimitsSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LimitsSync, limits_sync_free)

/* Begins: @bus has systemd. */
void limits_sync_start(LimitsSync *link, GDBusConnection *bus);

/* Types or slices have changed. */
void limits_sync_refresh(LimitsSync *link);

/* What each slice has; their data is the LimitsSync. */
extern const OutputKind limits_kind, device_limits_kind;

#endif
