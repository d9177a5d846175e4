/* SPDX-License-Identifier: MIT */
/*
 * Which VM uses which vGPU, by the processes that have VFIO's nodes open. A known result then costs
 * one system call for each vGPU; all of /proc is read only for new vGPUs.
 */
#ifndef LIB_PROCESSES_H
#define LIB_PROCESSES_H

#include <glib.h>

#include "lib/host_root.h"

typedef struct Vms Vms;

Vms *vms_new(HostRoot *root);

Vms *vms_ref(Vms *vms);
void vms_unref(Vms *vms);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vms, vms_unref)

/*
 * The VMs that use @uuids, which are open: UUID to the VM's name. vGPUs that nobody uses, or a
 * process that is no VM's, are left out. To be unreferenced. From any thread, but not from a main
 * loop: it may read all of /proc.
 */
GHashTable *vms_look(Vms *vms, const char *const *uuids);

/* Processes that have device nodes open, from /proc. */
/**
 * Holder - a process
 * @who: "VM red (process 123, qemu-system-x86)", "process 123 (Xorg)"
 * @node: the requested node that it has open
 * @engine: UUID of the vGPU whose engine it is, or NULL
 * @own: a vGPU's engine, or of a unit that vgpud starts: vgpu-describe@, vgpu-guard@. All of them
 * end by themselves
 * @reader: vgpu-nvidia-readings, which has each GPU open for a moment
 * @persists: NVIDIA's persistence daemon, which has GPUs open until it is told not to
 */
typedef struct {
    guint pid;
    char *who;
    char *node;
    char *engine;
    gboolean own;
    gboolean reader;
    gboolean persists;
} Holder;

/* Of Holder, one for each process and node. @nodes: as "dri/card0". This process is left out. */
GPtrArray *holders_find(HostRoot *root, const char *const *nodes);

/* Whether a VM of that name has a process. Reads all of /proc. */
gboolean vm_is_running(HostRoot *root, const char *name);

#endif
