/* SPDX-License-Identifier: MIT */
/* A GPU's users, and the threads in which they are looked for and it is switched. */
#ifndef VGPUD_MODES_MODE_WORK_H
#define VGPUD_MODES_MODE_WORK_H

#include <gio/gio.h>

#include "lib/gpu.h"
#include "lib/gpus.h"
#include "lib/host_root.h"

/*
 * The users of a GPU, and those that prevent another mode of it. Sentences, for people. May read
 * all of /proc.
 */

/*
 * The users that prevent the mode @target: it is never taken from them. vGPUs that no VM uses, and
 * that mdevctl has defined, are stopped instead. To be freed.
 */
GStrv users_in_the_way(HostRoot *root, const Gpu *gpu, GpuMode target);

/* UUIDs of its vGPUs. To be freed. */
GStrv users_vgpus(HostRoot *root, const Gpu *gpu);

/* Whether an engine of a vGPU has one of its nodes open. */
gboolean users_has_engines(HostRoot *root, const Gpu *gpu);

/*
 * The slow part of modes, in threads: finding a GPU's users (all of /proc), and switching it
 * (drivers are slow). The callbacks run in the main loop.
 */

/* @users: sentences; NULL with @error. Both belong to the caller and are valid until it returns. */
typedef void (*UsersFunc)(GStrv users, const GError *error, void *data);

/* All users of the GPU. */
void mode_work_list(HostRoot *root, const char *address, UsersFunc func, void *data);

/* The VMs that use it. */
void mode_work_vms(HostRoot *root, const char *address, UsersFunc func, void *data);

/* The users that prevent the mode @target. AGENT_ERROR_INVALID: the GPU cannot have it anyway. */
void mode_work_in_the_way(HostRoot *root, const char *address, GpuMode target, guint partitions,
                          UsersFunc func, void *data);

typedef void (*StepFunc)(const char *sentence, void *data);
/* @error: NULL: done. */
typedef void (*ReconciledFunc)(const GError *error, void *data);

/**
 * ModeWork - a switch (reconcile.h)
 * @start: copied
 * @step: called for each step as it is begun, before @done
 */
typedef struct {
    HostRoot *root;
    const char *address;
    GpuMode target;
    guint partitions;
    const char *const *start;
    gboolean dry_run;
    StepFunc step;
    ReconciledFunc done;
    void *data;
} ModeWork;

void mode_work_reconcile(const ModeWork *work);

#endif
