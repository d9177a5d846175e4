/* SPDX-License-Identifier: MIT */
/* vGPUs: in the kernel, and their definitions in mdevctl's configuration. */
#ifndef LIB_VGPU_H
#define LIB_VGPU_H

#include <glib.h>
#include <gio/gio.h>
#include <json-glib/json-glib.h>

#include "lib/host_root.h"

/**
 * Vgpu
 * @dir: of its attributes in sysfs
 * @gpu: its physical GPU: a PCI address, or "soft:NAME"
 * @type: its mdev type
 * @device: state of the device for its VM: "closed", "open", "running" …
 * @engine: state of its engine: "ready" …
 * @failure: why its engine gave up; empty: it did not
 * @vram, @window: bytes
 * @cuda: its engine offers CUDA; not with an older driver
 * @requests: of its guest so far; with @doorbells and @interrupts since the vGPU was made
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
    gboolean cuda;
    guint64 requests;
    guint64 doorbells;
    guint64 interrupts;
    guint64 engine_losses;
} Vgpu;

void vgpu_free(Vgpu *vgpu);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vgpu, vgpu_free)

/* NULL if no vGPU has that UUID, it is not one of ours, or it is just being removed. */
Vgpu *vgpu_read(HostRoot *root, const char *uuid);

/* Reads again all that can change. @dir: of its attributes; @state: content of that attribute. */
void vgpu_update(HostRoot *root, Vgpu *vgpu, const char *dir, const char *state);

/* All vGPUs, of Vgpu, in the order of their UUIDs. Other drivers' mediated devices are left out. */
GPtrArray *vgpus_read(HostRoot *root);

/* Waiting for a vGPU's engine, by sysfs alone: vgpud need not run. */
/*
 * Engines that start while the host is busy take some seconds; the driver waits as long when a VM
 * opens a vGPU.
 */
#define VGPU_READY_TIMEOUT_MS 30000

/*
 * Blocks until the engine of vGPU @uuid is ready, or @timeout_ms milliseconds are over.
 * G_IO_ERROR_NOT_FOUND: the vGPU is gone; G_IO_ERROR_FAILED: the engine gave up;
 * G_IO_ERROR_TIMED_OUT. The messages say what to do.
 */
gboolean vgpu_wait_ready(HostRoot *root, const char *uuid, guint timeout_ms, GError **error);

/* Parameters of a running vGPU, changed in sysfs. */
/**
 * VgpuWrite - a parameter; written only if @from and @to differ
 * @name: of the attribute, as "vram_bytes"
 */
typedef struct {
    const char *name;
    const char *from;
    const char *to;
} VgpuWrite;

/*
 * Writes all of @list, or none: if the driver refuses one, the earlier ones are restored. @dir: of
 * the attributes (Vgpu). AGENT_ERROR_NO_ROOM, AGENT_ERROR_IN_USE, AGENT_ERROR_FAILED.
 */
gboolean vgpu_write(HostRoot *root, const char *dir, const VgpuWrite *list, gsize count,
                    GError **error);

/*
 * Definitions of mediated devices in mdevctl's configuration, /etc/mdevctl.d/PARENT/UUID
 * (mdevctl(8)).
 */

#define DEFINITIONS_DIR "/etc/mdevctl.d"

/**
 * Definition
 * @parent: in mdevctl's form: a PCI address, or the name of a GPU without hardware
 * @type: mdev type
 * @autostart: started when the parent appears
 * @attributes: name below vgpu/ to its value, as written by anybody, in any form
 */
typedef struct {
    char *uuid;
    char *parent;
    char *type;
    gboolean autostart;
    GHashTable *attributes;
} Definition;

void definition_free(Definition *definition);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Definition, definition_free)

/* All definitions, of Definition. Files that are not mdevctl's JSON are left out. */
GPtrArray *definitions_read(HostRoot *root);

/* The definition of @uuid, whatever its parent; NULL: none. */
Definition *definition_find(HostRoot *root, const char *uuid);

/* There is a file for @uuid below any parent, whatever its content. */
gboolean definition_exists(HostRoot *root, const char *uuid);

/* NULL: none. */
Definition *definition_read(HostRoot *root, const char *parent, const char *uuid);

/* All of its JSON, to be unreferenced; empty if the file is gone or is not JSON. */
JsonObject *definition_json(HostRoot *root, const Definition *definition);

#endif
