/* SPDX-License-Identifier: MIT */
/*
 * How much of their GPU the processes of a vGPU's engine use, if the GPU's driver reports it: in
 * the fdinfo of their files (the kernel's Documentation/gpu/drm-usage-stats.rst).
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

#define DRM_SCAN_US (30 * G_USEC_PER_SEC)

#endif
