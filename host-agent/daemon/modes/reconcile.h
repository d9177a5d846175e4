/* SPDX-License-Identifier: MIT */
/*
 * Brings a GPU into a mode, from whatever the kernel has now. What is so already is not done again,
 * so that it can be called anew after it was cut short anywhere. It blocks, for as long as drivers,
 * VMs' engines and mdevctl take: call it in a thread.
 */
#ifndef VGPUD_MODES_RECONCILE_H
#define VGPUD_MODES_RECONCILE_H

#include "lib/gpu.h"

/**
 * Reconciliation - what is to be done
 * @root: "" in production
 * @address: of the GPU
 * @partitions: with GPU_MODE_PARTITIONED: how many; 0: all that it can have
 * @start: UUIDs of vGPUs to start when it is shared, NULL terminated; may be NULL
 * @dry_run: nothing is done, only said
 * @step: told each step before it is done, as a sentence, in the caller's thread
 */
typedef struct {
    const char *root;
    const char *address;
    GpuMode target;
    guint partitions;
    const char *const *start;
    gboolean dry_run;
    void (*step)(const char *sentence, void *data);
    void *data;
} Reconciliation;

/*
 * AGENT_ERROR_IN_USE: somebody has the GPU, who is named; nothing was taken from them, but steps
 * before that may have been done. AGENT_ERROR_INVALID: this GPU can't have that mode.
 */
gboolean converge(const Reconciliation *want, GError **error);

/*
 * Whether @gpu can have the mode at all, whoever has it now: AGENT_ERROR_INVALID says why not. May
 * run programs.
 */
gboolean reconcile_possible(const char *root, const Gpu *gpu, GpuMode target, guint partitions,
                           GError **error);

/* The GPU as the kernel has it now; its name is empty. AGENT_ERROR_NOT_FOUND. */
Gpu *reconcile_look(const char *root, const char *address, GError **error);

/* Sets AGENT_ERROR_IN_USE with the list of who is in the way. */
void reconcile_set_in_use(GError **error, const char *address, GpuMode target,
                         const char *const *users);

#endif
