/* SPDX-License-Identifier: MIT */
/*
 * What a user of a slice needs: the one place that knows it. CDI's file and the method GetDoor are
 * made of this.
 */
#ifndef VGPUD_SYNC_DOOR_H
#define VGPUD_SYNC_DOOR_H

#include "host-agent/daemon/containers/transport.h"
#include "host-agent/daemon/slices/slices.h"

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

/* A slice's name for containers' runtimes is this, and its UUID or name. */
#define DOOR_CDI_KIND "mdev-vgpu.org/slice"

/**
 * DoorHost - what the host has for all slices
 * @layer: NULL: slices with transport native have no door
 * @manifest: of the layer, for containers
 * @guarded: the layer for containers with a guarded slice; NULL: only programs with the variables
 * of the slice have it
 * @cuda: NULL: none has CUDA
 */
typedef struct {
    Host *host;
    CdiLayer *layer;
    char *manifest;
    CdiLayer *guarded;
    CudaDoor *cuda;
} DoorHost;

DoorHost *door_host_new(Host *host);
void door_host_free(DoorHost *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DoorHost, door_host_free)

/**
 * Door
 * @env: NAME=VALUE, for a program of the host
 * @container_env: for a container, which has @nodes and @mounts
 * @nodes: as "/dev/dri/renderD128", with the same path in the container
 * @mounts: of CudaMount, all read-only
 * @cuda: what its container's hook does for CUDA; NULL: it has none
 * @mdev: directory of a vGPU in sysfs; NULL: it is none
 */
typedef struct {
    GStrv env;
    GStrv container_env;
    GStrv nodes;
    GPtrArray *mounts;
    const char *cuda;
    char *mdev;
} Door;

/* What a user of a native slice of @gpu opens, as in Door. Empty: nothing. To be freed. */
GStrv door_native_nodes(const DoorHost *host, const Gpu *gpu);

/* NULL: the slice cannot be used now. */
Door *door_find(const DoorHost *host, const Slice *slice);

void door_free(Door *door);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Door, door_free)

/* Options of all mounts; up to NULL. */
extern const char *const door_mount_options[];

#endif
