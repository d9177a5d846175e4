/* SPDX-License-Identifier: MIT */
/*
 * Containers' devices in CDI (Container Device Interface), for podman, docker, containerd and
 * cri-o: what a runtime adds to a container for each, in JSON.
 */
#ifndef VGPUD_CONTAINERS_CDI_SPEC_H
#define VGPUD_CONTAINERS_CDI_SPEC_H

#include "host-agent/daemon/containers/cuda_door.h"
#include "host-agent/model/slice.h"
#include "lib/host_root.h"

#define CDI_KIND "mdev-vgpu.org/slice"
/* The names in the programs' command lines. */
#define CDI_DIR  "/run/cdi"
#define CDI_FILE CDI_DIR "/mdev-vgpu.json"

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

/* Where the containers' hook is installed; the system's path if it is nowhere. */
const char *cdi_hook_find(HostRoot *root);

/**
 * CdiDevice - an available slice
 * @node: of the GPU, as "dri/renderD128"; of a vGPU as "vfio/16"; NULL: none
 * @cuda_nodes: of the GPU for CUDA, as "nvidia0"; up to NULL; NULL: it has no CUDA
 */
typedef struct {
    const Slice *slice;
    const char *node;
    const char *const *cuda_nodes;
} CdiDevice;

/*
 * The specification, to be freed. @devices: of CdiDevice, by their UUIDs; NULL if there is none:
 * CDI has no specification without devices. @layer: NULL: slices with transport native are left
 * out. @cuda: NULL: no device has CUDA. @hook: path.
 */
char *cdi_spec(const GPtrArray *devices, const CdiLayer *layer, const CudaDoor *cuda,
               const char *hook);

#endif
