/* SPDX-License-Identifier: MIT */
/* Hosts with NVIDIA's driver, whose CUDA has five functions. */
#ifndef HOST_AGENT_TESTS_NVIDIA_KIT_H
#define HOST_AGENT_TESTS_NVIDIA_KIT_H

#include "lib/host_root.h"

#if defined(__aarch64__)
#define LIBS "/usr/lib/aarch64-linux-gnu"
#else
#define LIBS "/usr/lib/x86_64-linux-gnu"
#endif
#define DOOR    "/usr/lib/mdev-vgpu/cuda/libcuda.so.1"
#define VERSION "570.1"
#define KNOWN   "cuInit cuCtxGetDevice cuMemAlloc_v2 cuMemFree_v2 cuMemGetInfo_v2"

/* Of a started vGPU, for recorded_host_add_vgpu(). */
#define VGPU_ATTRIBUTES                                                                            \
    "state=device=closed engine=ready|failure=|vram_bytes=1073741824|window_bytes=268435456|"      \
    "weight=100|cap=100|priority=0"

/* Driver, GPU ADDRESS' entry in /proc, and the CUDA door. */
void nvidia_kit_add_driver(HostRoot *root);
/* The library of programs without a node, and their worker. */
void nvidia_kit_add_remote(HostRoot *root);

/* A host that shares its GPU; with the driver. */
HostRoot *nvidia_kit_tree(void);
/* One that shares an NVIDIA GPU with VMs, and has no slice. */
HostRoot *nvidia_kit_vgpu_tree(void);

/* Where the link to the driver's library leads; NULL: there is none. */
void nvidia_kit_assert_link(HostRoot *root, const char *name, const char *expected);

#endif
