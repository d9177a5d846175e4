/* SPDX-License-Identifier: MIT */
/*
 * How much of their GPU processes use, if the GPU's driver reports it: in the fdinfo of their files
 * (the kernel's Documentation/gpu/drm-usage-stats.rst).
 */
#ifndef LIB_DRM_CLIENTS_H
#define LIB_DRM_CLIENTS_H

#include <glib.h>

#include "lib/host_root.h"

/**
 * DrmUse
 * @known: the driver reports GPU time; else @gpu_ns is 0
 * @gpu_ns: of all engines of the GPU, since the first look at the vGPU; never decreases
 * @vram_known, @vram: bytes of the GPU's own memory now
 */
typedef struct {
    gboolean known;
    guint64 gpu_ns;
    gboolean vram_known;
    guint64 vram;
} DrmUse;

typedef struct DrmClients DrmClients;

/* @uuid: of the vGPU, whose unit's cgroup has the processes; @gpu: address of its GPU. */
DrmClients *drm_clients_new(HostRoot *root, const char *uuid, const char *gpu);

void drm_clients_free(DrmClients *clients);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DrmClients, drm_clients_free)

/*
 * Adds to @use what has accumulated since the last call. The set of files is searched at most once
 * in DRM_SCAN_US, because an engine may have thousands.
 */
void drm_clients_read(DrmClients *clients, DrmUse *use);

/*
 * A process's files of a GPU. One that a child has from its parent, or that was passed on, has the
 * same client id in both processes, and the use of both. @files: how many files may be looked at;
 * decreased.
 */

/**
 * DrmClientUse - of one client of a GPU's driver
 * @has_ns, @ns: time of all engines so far; its driver may not report it
 * @vram: bytes of the GPU's own memory now
 * @has_shared, @shared: the part of that which other clients hold, too; only newer drivers tell it
 */
typedef struct {
    gboolean has_ns;
    guint64 ns;
    guint64 vram;
    gboolean has_shared;
    guint64 shared;
} DrmClientUse;

/* An empty table of client ids to DrmClientUse. To be unreferenced. */
GHashTable *drm_uses_new(void);

/* Adds the clients of process @pid on GPU @gpu to @uses. */
void drm_process_add(HostRoot *root, guint pid, const char *gpu, GHashTable *uses, guint *files);

/*
 * Whether process @pid has used GPU @gpu by a client that is none of @uses: it has had time of an
 * engine, or has memory. A process that only looks which GPUs there are has neither.
 */
gboolean drm_process_uses(HostRoot *root, guint pid, const char *gpu, GHashTable *uses,
                          guint *files);

/* The driver reports the engines' time of one of them. */
gboolean drm_uses_have_times(GHashTable *uses);

/*
 * The engines' time between two tables, @elapsed_ns apart. A client that is not in @before has come
 * since, or could not be read then: it counts for no longer than that.
 */
guint64 drm_uses_growth(GHashTable *before, GHashTable *now, guint64 elapsed_ns);

#endif
