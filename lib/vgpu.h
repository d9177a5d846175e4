/* SPDX-License-Identifier: MIT */
/*
 * A vGPU as the driver shows it in sysfs, below its mdev device.
 */
#ifndef LIB_VGPU_H
#define LIB_VGPU_H

#include <gio/gio.h>
#include <glib.h>

/**
 * Vgpu
 * @dir: of its attributes in sysfs
 * @gpu: the physical GPU that it is on: a PCI address, or "soft:NAME"
 * @type: its mdev type
 * @device: what its VM does with it: "closed", "open", "running" …
 * @engine: how its engine is: "ready" …
 * @failure: why its engine gave up; empty: it did not
 * @vram, @window: bytes
 * @display: how many it has, 0 or 1
 * @tenant, @class: as somebody with write access to sysfs has put them there, in whatever form;
 * empty: nobody has, or the driver is older
 * @oversubscribe: bytes; -1: the same
 * @requests: that its guest has made so far; with @doorbells and @interrupts since the vGPU was
 * made
 * @engine_losses: engines that died under it
 */
typedef struct {
    char *uuid;
    char *dir;
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
    guint display;
    char *tenant;
    char *class;
    gint64 oversubscribe;
    guint64 requests;
    guint64 doorbells;
    guint64 interrupts;
    guint64 engine_losses;
} Vgpu;

void vgpu_free(Vgpu *vgpu);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vgpu, vgpu_free)

/* NULL where there is none of that UUID, it is not one of ours, or it goes just now. */
Vgpu *vgpu_read(const char *root, const char *uuid);

/* Reads all of it anew that can change. @dir: of its attributes; @state: as that attribute has it.
 */
void vgpu_update(Vgpu *vgpu, const char *dir, const char *state);

/* All vGPUs of @root, of Vgpu, in the order of their UUIDs. Mediated devices of others are left
 * out. */
GPtrArray *vgpus_read(const char *root);

/*
 * Waiting for a vGPU's engine, by sysfs alone: vgpud need not be there.
 */
/* Engines that are started when the host is busy take some seconds; the driver waits as long when a
 * VM opens one. */
#define VGPU_READY_TIMEOUT_MS 30000

/*
 * Blocks until the engine of vGPU @uuid is ready, or @timeout_ms milliseconds are over.
 * G_IO_ERROR_NOT_FOUND: it is gone; G_IO_ERROR_FAILED: the engine gave up; G_IO_ERROR_TIMED_OUT.
 * The messages say what to do.
 */
gboolean vgpu_wait_ready(const char *root, const char *uuid, guint timeout_ms, GError **error);

/*
 * Parameters of a vGPU, changed in sysfs while it runs.
 */
/**
 * VgpuWrite - a parameter; written only where @from and @to differ
 * @name: of the attribute, as "vram_bytes"
 */
typedef struct {
    const char *name;
    const char *from;
    const char *to;
} VgpuWrite;

/*
 * All of @list, or none: at one that the driver refuses those before it are put back. @dir: of the
 * attributes (Vgpu). AGENT_ERROR_NO_ROOM, AGENT_ERROR_IN_USE, AGENT_ERROR_FAILED.
 */
gboolean vgpu_write(const char *dir, const VgpuWrite *list, gsize count, GError **error);

#endif
