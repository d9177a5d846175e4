/* SPDX-License-Identifier: MIT */
/*
 * The CUDA door on this host, and NVIDIA's driver behind it: what a container with a slice of an
 * NVIDIA GPU gets, and what a program of the host needs. docs/cuda.md says how the door works.
 */
#ifndef VGPUD_CONTAINERS_CUDA_DOOR_H
#define VGPUD_CONTAINERS_CUDA_DOOR_H

#include <glib.h>

#include "lib/host_root.h"
#include "lib/nvidia_driver.h"

/* Where the door finds the driver's libraries on the host: FOLDER/real is a link to this. */
#define CUDA_REAL_LINKS "/run/vgpu/nvidia"

/**
 * CudaDoor
 * @folder: "/usr/lib/mdev-vgpu": cuda/ below it has the door, and real/ the driver's libraries
 * @programs: files of the driver that are no libraries; up to NULL
 */
typedef struct {
    char *folder;
    NvidiaDriver *driver;
    GStrv programs;
} CudaDoor;

/**
 * CudaMount - a file of the host, and where a container has it
 */
typedef struct {
    char *from;
    char *to;
} CudaMount;

/* NULL: the door is not installed, or NVIDIA's driver is not. */
CudaDoor *cuda_door_find(HostRoot *root);

void cuda_door_free(CudaDoor *door);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CudaDoor, cuda_door_free)

/*
 * Nodes of the GPU at @gpu for CUDA, as "nvidia0"; without those that this host lacks. Empty: it is
 * no GPU of NVIDIA's driver.
 */
GStrv cuda_door_nodes(HostRoot *root, const char *gpu);

/* For a slice with these engines (0: all): of CudaMount. */
GPtrArray *cuda_door_mounts(const CudaDoor *door, guint engines);

/*
 * Makes CUDA_REAL_LINKS, or changes them to the driver that is there now, for a program of the
 * host.
 */
gboolean cuda_door_link(HostRoot *root, const CudaDoor *door, GError **error);

/* Where a program finds the door's libraries, for LD_LIBRARY_PATH. To be freed. */
char *cuda_door_libraries(const CudaDoor *door);

#endif
