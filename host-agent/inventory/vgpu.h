/* SPDX-License-Identifier: MIT */
/*
 * A vGPU as the driver shows it in sysfs, below its mdev device.
 */
#ifndef INVENTORY_VGPU_H
#define INVENTORY_VGPU_H

#include <glib.h>

/**
 * Vgpu
 * @gpu: the physical GPU that it is on: a PCI address, or "soft:NAME"
 * @type: its mdev type
 * @device: what its VM does with it: "closed", "open", "running" …
 * @engine: how its engine is: "ready" …
 * @failure: why its engine gave up; empty: it did not
 * @vram, @window: bytes
 * @requests: that its guest has made so far; with @doorbells and @interrupts since the vGPU was
 * made
 * @engine_losses: engines that died under it
 */
typedef struct {
    char *uuid;
    char *gpu;
    char *type;
    char *device;
    char *engine;
    char *failure;
    guint64 vram;
    guint64 window;
    guint weight;
    guint cap;
    int priority;
    guint64 requests;
    guint64 doorbells;
    guint64 interrupts;
    guint64 engine_losses;
} Vgpu;

void vgpu_free(Vgpu *vgpu);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vgpu, vgpu_free)

/* All vGPUs of @root, of Vgpu, in the order of their UUIDs. Mediated devices of others are left
 * out. */
GPtrArray *vgpus_read(const char *root);

#endif
