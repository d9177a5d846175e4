/* SPDX-License-Identifier: MIT */
/*
 * What a container gets for its slice: sockets and directories, and the libraries of the CUDA
 * door.
 */
#ifndef VGPUD_CONTAINERS_TRANSPORT_H
#define VGPUD_CONTAINERS_TRANSPORT_H

#include <glib.h>
#include <gio/gio.h>
#include <sys/types.h>

#include "lib/host_root.h"
#include "lib/nvidia_driver.h"
#include "host-agent/model/slice.h"

#define CONTAINERS_DIR "/run/vgpu/containers"
#define GUARD_DIR      "/run/vgpu/guard"
#define OWNERS_DIR     "/run/vgpu/owners"
#define GUARD_SOCKET   "vtest.sock"
#define CUDA_SOCKET    "cuda.sock"

/*
 * In the slice's directory, which must exist: the link for a program. @gpu: address of the slice's
 * GPU.
 */
gboolean slice_dirs_link(HostRoot *root, const char *uuid, const char *gpu, GError **error);

/* Its path, for VGPU_GOVERNOR_SLICES. To be freed. */
char *slice_dirs_of_program(HostRoot *root, const char *uuid);

/*
 * vgpu-guard@UUID.service of containers' slices: started with its own user, which vgpu-engine-user
 * writes first, and stopped. Steps run one after the other, so that an old guard and a new one with
 * the same UUID are not mixed up.
 */
typedef struct GuardUnits GuardUnits;

/* The guard of @uuid is about to be started: systemd may load its unit, which has its user. */
typedef void (*GuardStarts)(const char *uuid, void *data);

/**
 * GuardFuncs
 * @failed: the guard of @uuid has no user, and was not started: why
 */
typedef struct {
    GuardStarts starts;
    void (*failed)(const char *uuid, const char *why, void *data);
} GuardFuncs;

/* @bus: a reference is taken. @funcs: copied. */
GuardUnits *guard_units_new(HostRoot *root, GDBusConnection *bus, const GuardFuncs *funcs,
                            void *data);

/* Pending steps are dropped. */
void guard_units_free(GuardUnits *units);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GuardUnits, guard_units_free)

/* Neither waits. */
void guard_units_start(GuardUnits *units, const char *uuid);
void guard_units_stop(GuardUnits *units, const char *uuid);

/*
 * The CUDA door on this host, and NVIDIA's driver behind it: what a container with a slice of an
 * NVIDIA GPU gets, and what a program of the host needs. governor/cuda/DESIGN.md says how the door
 * works.
 */

/* Where the door finds the driver's libraries on the host: FOLDER/real is a link to this. */
#define CUDA_REAL_LINKS "/run/vgpu/nvidia"

/**
 * CudaDoor
 * @folder: "/usr/lib/mdev-vgpu": cuda/ below it has the door, and real/ the driver's libraries
 * @programs: files of the driver that are no libraries; up to NULL
 * @graphics: the same, for the engine graphics only
 * @remote: it has what gives CUDA to who has no node: vgpu-cuda-worker, and guest/ for containers
 */
typedef struct {
    char *folder;
    NvidiaDriver *driver;
    GStrv programs;
    GStrv graphics;
    gboolean remote;
} CudaDoor;

/**
 * CudaMount - a file of the host, and where a container has it
 */
typedef struct {
    char *from;
    char *to;
} CudaMount;

void cuda_mount_free(CudaMount *mount);

/* NULL: the door is not installed, or NVIDIA's driver is not. */
CudaDoor *cuda_door_find(HostRoot *root);

void cuda_door_free(CudaDoor *door);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CudaDoor, cuda_door_free)

/*
 * Nodes of the GPU at @gpu for CUDA, as "nvidia0"; without those that this host lacks. Empty: it is
 * no GPU of NVIDIA's driver.
 */
GStrv cuda_door_nodes(HostRoot *root, const char *gpu);

/*
 * Makes the links /dev/char/MAJOR:MINOR to these nodes of the GPU, which udev does not make: the
 * kernel does not tell it of them. systemd knows the devices that a container may open by such
 * links: at its next daemon-reload, containers lose those without one.
 */
void cuda_door_name_nodes(HostRoot *root, const char *gpu);

/*
 * The door that a slice of the GPU gets if its request says "auto": one by which programs have CUDA
 * if the GPU has it, else the one whose limits bind all programs.
 */
SliceTransport slice_transport_of_gpu(HostRoot *root, const char *gpu);

/*
 * For a slice with these engines (0: all): of CudaMount. Without the driver's libraries for what
 * the slice may not use.
 */
GPtrArray *cuda_door_mounts(const CudaDoor *door, guint engines);

/* The same for a slice of transport guarded of a door that is @remote: our library alone. */
GPtrArray *cuda_remote_mounts(const CudaDoor *door);

/* Where a program of the host finds that library, for LD_LIBRARY_PATH. To be freed. */
char *cuda_remote_libraries(const CudaDoor *door);

/*
 * Makes CUDA_REAL_LINKS, or changes them to the driver that is there now, for a program of the
 * host.
 */
gboolean cuda_door_link(HostRoot *root, const CudaDoor *door, GError **error);

/* Where a program finds the door's libraries, for LD_LIBRARY_PATH. To be freed. */
char *cuda_door_libraries(const CudaDoor *door);

#endif
