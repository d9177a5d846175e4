/* SPDX-License-Identifier: MIT */
/* CDI: the file that tells containers' runtimes which slices there are. */
#ifndef VGPUD_SYNC_CDI_H
#define VGPUD_SYNC_CDI_H

#include "lib/host_root.h"
#include "host-agent/daemon/slices/slices.h"

/*
 * Containers' devices in CDI (Container Device Interface), for podman, docker, containerd and
 * cri-o: what a runtime adds to a container for each, in JSON.
 */

/**
 * CdiLayer - the governor's layer on this host
 * @manifest: path of its manifest
 * @library: path of the library that the manifest names
 */
typedef struct {
    char *manifest;
    char *library;
} CdiLayer;

/* Where it is installed, by its manifest; NULL: it is not, or its manifest cannot be read. */
CdiLayer *cdi_layer_find(HostRoot *root);

void cdi_layer_free(CdiLayer *layer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CdiLayer, cdi_layer_free)

/* /run/cdi/mdev-vgpu.json, kept in step with the slices; and the manager's method GetCdi. */

typedef struct CdiSync CdiSync;

/* Both live longer. Nothing is written before cdi_sync_start(). */
CdiSync *cdi_sync_new(Host *host, const Slices *slices);

void cdi_sync_free(CdiSync *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CdiSync, cdi_sync_free)

void cdi_sync_start(CdiSync *link);

/* GPUs have changed. The file is up to date when this returns. */
void cdi_sync_refresh(CdiSync *link);

/* The same for a slice that was added, changed or removed. */
void cdi_sync_update(CdiSync *link, const char *uuid);

#endif
