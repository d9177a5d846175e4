/* SPDX-License-Identifier: MIT */
/*
 * What the engine of a vGPU may take of the host, as its cgroup holds it: processor time and
 * memory. By systemd's properties of its unit, so that systemd and the kernel always mean the same.
 */
#ifndef VGPUD_ENGINES_LIMITS_H
#define VGPUD_ENGINES_LIMITS_H

#include "host-agent/model/slice.h"

#define LIMIT_NONE G_MAXUINT64

/*
 * What an engine may need beside its guest's GPU memory: itself, shaders that are compiled, and a
 * render worker for each of the guest's contexts, of which there are 128 at most.
 */
#define ENGINE_OWN_MEMORY (G_GUINT64_CONSTANT(4) << 30)

/**
 * EngineLimits
 * @cpu_us: processor time in microseconds per second; LIMIT_NONE: all that there is
 * @memory: bytes; LIMIT_NONE: all that there is
 * @weight: share of processor time under contention with other engines, as the vGPU has of its
 * GPU's
 */
typedef struct {
    guint64 cpu_us;
    guint64 memory;
    guint weight;
} EngineLimits;

/*
 * Of a vGPU whose type says @cpu and @memory (GpuType). Where the type says nothing of memory, the
 * engine may have its vGPU's memory as host memory, as it does on a GPU without memory of its own,
 * what it was given beyond that, and ENGINE_OWN_MEMORY: more than a guest that computes takes, and
 * less than all.
 */
EngineLimits engine_limits_of(const Slice *slice, guint cpu, guint64 memory);

gboolean engine_limits_equal(const EngineLimits *a, const EngineLimits *b);

/* The unit is so by itself: nothing is limited. */
gboolean engine_limits_are_none(const EngineLimits *limits);

/* As Manager.SetUnitProperties() takes them: floating, of type a(sv). All of them, so that a limit
 * that is gone is undone. */
GVariant *engine_limits_properties(const EngineLimits *limits);

/* vgpu-engine-user has been there, so the unit may be loaded: before, it would be without its user.
 */
gboolean engine_limits_can_be_set(const char *root, const char *uuid);

/* Some were set since the vGPU was made; what is set there stays when the engine is restarted. */
gboolean engine_limits_were_set(const char *root, const char *uuid);

/*
 * Limits of GPUs that a kernel may hold by itself for the cgroup of an engine, and that systemd has
 * no properties for: dmem.max (Linux 6.14), and drm.weight, which was proposed for Linux and is not
 * in it. No kernel of Debian's has them; untested.
 *
 * They are written by vgpu-device-limits@UUID.service, for vgpud's sandbox has cgroups for reading
 * only.
 */
/*
 * The kernel could hold the engine to what the slice has, and does not (any more): so it is with
 * each new engine, whose cgroup is new. FALSE as well where there is no engine.
 */
gboolean device_limits_differ(const char *root, const Slice *slice);

#endif
