/* SPDX-License-Identifier: MIT */
/*
 * Who has device nodes open, by /proc.
 */
#ifndef MODES_HOLDERS_H
#define MODES_HOLDERS_H

#include <glib.h>

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

#endif
