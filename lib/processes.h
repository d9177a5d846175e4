/* SPDX-License-Identifier: MIT */
/*
 * Which VM has which vGPU open, by the processes that have VFIO's nodes. What was found once costs
 * one system call a vGPU from then on; all of /proc is read only for those that are new.
 */
#ifndef LIB_PROCESSES_H
#define LIB_PROCESSES_H

#include <glib.h>

typedef struct Vms Vms;

/* @root: "" in production; copied. */
Vms *vms_new(const char *root);

Vms *vms_ref(Vms *vms);
void vms_unref(Vms *vms);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vms, vms_unref)

/*
 * Which VMs have those of @uuids, which are open: UUID to the VM's name, without those that nobody has, or a process that
 * is no VM's. To be unreferenced. From any thread, and not from a main loop: it may read all of /proc.
 */
GHashTable *vms_look(Vms *vms, const char *const *uuids);

/*
 * Who has device nodes open, by /proc.
 */
/**
 * Holder - a process
 * @who: "VM red (process 123, qemu-system-x86)", "process 123 (Xorg)"
 * @node: that it has open, one of those that were asked for
 * @engine: UUID of the vGPU whose engine it is, or NULL
 * @own: a vGPU's engine, or of a unit that vgpud starts: vgpu-describe@, vgpu-guard@. All of them end without help
 */
typedef struct {
    guint pid;
    char *who;
    char *node;
    char *engine;
    gboolean own;
} Holder;

/* Of Holder, one for each process and node. @nodes: as "dri/card0". This process is left out. */
GPtrArray *holders_find(const char *root, const char *const *nodes);

/*
 * VMs by their processes: QEMU's command line, or the cgroup that systemd-machined made for it,
 * says which VM it is.
 */
/*
 * The name of the VM whose VMM the process is; NULL: it is none. @dir: as /proc/123. @cgroup: its
 * text there, or NULL. To be freed.
 */
char *vm_name_of_process(const char *dir, const char *cgroup);

/* Whether there is a process of a VM of that name. Reads all of /proc. */
gboolean vm_is_running(const char *root, const char *name);

#endif
