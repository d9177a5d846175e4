/* SPDX-License-Identifier: MIT */
/* What a GPU is registered with in the driver, and the driver's control node. */
#ifndef LIB_CONTROL_H
#define LIB_CONTROL_H

#include <glib.h>
#include <linux/vgpu.h>

#include "lib/gpus.h"
#include "lib/host_root.h"

/* What would be registered with the driver for one GPU: types with numbers in place of parts. */

/**
 * Plan - one GPU
 * @driver: of the GPU's bound driver; NULL for a soft GPU
 * @vram_source: the origin of that number
 * @capacity_bytes: promisable part of @vram_bytes, overcommitment included
 * @left_out: sentences about types that do not fit this GPU; of char *
 */
typedef struct {
    char *gpu;
    char *driver;
    guint64 vram_bytes;
    char *vram_source;
    guint64 capacity_bytes;
    guint ntypes;
    struct vgpu_type_desc types[VGPU_MAX_TYPES];
    GPtrArray *left_out;
} Plan;

void plan_free(Plan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Plan, plan_free)

/*
 * @types: of GpuType. Errors of hardware_find() and hardware_vram(); REGISTRAR_ERROR_CONFIG if the
 * GPU would have no type at all, or more than the driver accepts.
 */
Plan *plan_new(HostRoot *root, const GpuEntry *entry, const GPtrArray *types, GError **error);

/* /dev/vgpu-control. Every errno becomes a sentence that a person can act on. */

/* A file descriptor for the other functions; the caller closes it. REGISTRAR_ERROR_NO_DRIVER. */
int control_open(HostRoot *root, GError **error);

/*
 * Registers a GPU. If it is registered already, that is no error: it is not changed and *@existed
 * is set.
 */
gboolean control_add(int fd, HostRoot *root, const Plan *plan, gboolean *existed, GError **error);

/* Changes a registered GPU's memory and types. REGISTRAR_ERROR_ABSENT: not registered. */
gboolean control_update(int fd, HostRoot *root, const Plan *plan, GError **error);

/* REGISTRAR_ERROR_ABSENT: not registered. */
gboolean control_remove(int fd, HostRoot *root, const char *gpu, GError **error);

/*
 * While a GPU is drained, no vGPU can be made on it and no VM can open one of its vGPUs. Draining
 * twice is no error. REGISTRAR_ERROR_ABSENT: not registered.
 */
gboolean control_drain(int fd, const char *gpu, gboolean on, GError **error);

/*
 * A vGPU is about to be made with @vram bytes instead of its type's: the driver admits it with
 * these.
 * @type: as sysfs names it. @vram: 0: it is not made. REGISTRAR_ERROR_ABSENT: the GPU or the type
 * is not registered.
 */
gboolean control_announce(int fd, const char *gpu, const char *type, const char *uuid, guint64 vram,
                          GError **error);

/* The system call itself: 0, or -1 with errno. Unit tests replace it. */
int control_call(int fd, unsigned long request, void *argument);

#endif
