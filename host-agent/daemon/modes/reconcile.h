/* SPDX-License-Identifier: MIT */
/* Brings a GPU into a mode: in the vGPU driver, in mdevctl, and by its drivers. */
#ifndef VGPUD_MODES_RECONCILE_H
#define VGPUD_MODES_RECONCILE_H

#include <glib.h>

#include "lib/gpu.h"
#include "lib/host_root.h"

/* A shared GPU in the vGPU driver, and its vGPUs in mdevctl. These calls block. */

/* Whether the kernel module is loaded; without it GPUs are shared with containers only. */
gboolean share_has_driver(HostRoot *root);

/*
 * Registers the GPU as the registrar would, from gpus.conf and types.d. If it is registered
 * already, that is no error. Without the driver the GPU is shared with containers only.
 */
gboolean share_register(HostRoot *root, const char *address, GError **error);

/* Drains it, or ends that. If it is not registered, that is no error: nothing can be made on it. */
gboolean share_drain(HostRoot *root, const char *address, gboolean on, GError **error);

/*
 * Brings a GPU into a mode, from any state in the kernel. Steps that are done already are skipped,
 * so it can be called again after any interruption. It blocks for as long as drivers, VMs' engines
 * and mdevctl take: call it in a thread.
 */

/**
 * Reconciliation - the input
 * @address: of the GPU
 * @partitions: with GPU_MODE_PARTITIONED: how many; 0: the maximum
 * @start: UUIDs of vGPUs to start when it is shared, NULL terminated; may be NULL
 * @dry_run: steps are only reported
 * @step: called with each step before it is done, a sentence, in the caller's thread
 */
typedef struct {
    HostRoot *root;
    const char *address;
    GpuMode target;
    guint partitions;
    const char *const *start;
    gboolean dry_run;
    void (*step)(const char *sentence, void *data);
    void *data;
} Reconciliation;

/*
 * AGENT_ERROR_IN_USE: the GPU is in use, by the named users; they keep it, but steps before that
 * may have been done. AGENT_ERROR_INVALID: this GPU cannot have that mode.
 */
gboolean converge_gpu(const Reconciliation *want, GError **error);

/*
 * Whether @gpu can have the mode at all, whoever uses it now: AGENT_ERROR_INVALID says why not. May
 * run programs.
 */
gboolean reconcile_possible(HostRoot *root, const Gpu *gpu, GpuMode target, guint partitions,
                            GError **error);

/* The GPU in the kernel's present state; its name is empty. AGENT_ERROR_NOT_FOUND. */
Gpu *reconcile_look(HostRoot *root, const char *address, GError **error);

/* Sets AGENT_ERROR_IN_USE with the list of users. */
void reconcile_set_in_use(GError **error, const char *address, GpuMode target,
                          const char *const *users);

#endif
