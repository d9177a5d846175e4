/* SPDX-License-Identifier: MIT */
/* A part of a GPU that is promised: a vGPU of a VM, or a container's slice. */
#ifndef MODEL_SLICE_H
#define MODEL_SLICE_H

#include <glib.h>

#include "host-agent/model/memory_use.h"

/* How firm the promise is, in the words that fleets use. */
typedef enum {
    SLICE_GUARANTEED,  /* all of it, always */
    SLICE_BURSTABLE,   /* its compute is a floor; it may use more, and the VRAM may be overcommitted
                        */
    SLICE_BEST_EFFORT, /* uses what is left; the first to be stopped when memory is short */
} SliceClass;

/* How the slice's user accesses the GPU. */
typedef enum {
    SLICE_TRANSPORT_VM,      /* a vGPU, assigned to a VM by libvirt or directly */
    SLICE_TRANSPORT_VFIO,    /* a vGPU, whose VFIO group is passed to a container */
    SLICE_TRANSPORT_NATIVE,  /* the GPU's own nodes, and the governor's layer in the container */
    SLICE_TRANSPORT_GUARDED, /* no node: a socket to its own vgpu-guard */
} SliceTransport;

/* Nobody may use a slice without a container. */
#define SLICE_NO_UID (-1)

/**
 * Slice
 * @uuid: of the vGPU, or generated for a container's slice
 * @transport: how its user accesses the GPU; with the first two it is a vGPU, which the kernel
 * knows
 * @name: commands and containers may request it by this as well as by @uuid; "": none
 * @ephemeral: removed when its container ends
 * @request: of the call that made it: all slices of one request are made, or none
 * @gpu: address of its GPU
 * @type: its mdev type, the name in sysfs; "": a container's slice of its own size
 * @tenant: "": none
 * @vram: bytes promised
 * @resident: the part of @vram that is always on the GPU, the rest moves; 0: all of it
 * @compute: per cent of the GPU promised; 0 for best effort
 * @oversubscribe: bytes of host memory that may replace GPU memory beyond @vram
 * @display: number of its vGPU's displays, 0 or 1; -1: not known, or no vGPU
 * @engines: of Engine, allowed ones; 0: all
 * @job: slices of one job are placed near each other; "": none
 * @replica: slices of one replica name are kept on different GPUs; "": none
 * @domain: name of the libvirt domain that it is made for and removed with; "": none
 * @owner: an engine's name for the job or the like that it is made for and removed with; "": none
 * @part: which of its owner's slices on this host
 * @pool: that its GPU must belong to; "": GPU_POOL_LOCAL
 * @asked: checksum of the request; "" without an owner
 * @uid: who may use it without a container, or SLICE_NO_UID
 * @since: when it was made for its owner, seconds since 1970
 * @present: the kernel has it; always, if it is no vGPU
 * @defined: it is in mdevctl's configuration
 * @autostart: it is started at boot, too
 * @reserved: room is kept for it while it is being made or started
 * @leaving: it is being removed: it accepts no new user
 * @suspended: its programs' GPU memory is in the host's. What is promised to it is free for others,
 * unless it is a vGPU
 * @expected: bytes that it uses by the hour of the day, as it did before; 0: not known
 */
typedef struct {
    char *uuid;
    SliceTransport transport;
    char *name;
    gboolean ephemeral;
    char *request;
    char *gpu;
    char *type;
    char *tenant;
    SliceClass class;
    guint64 vram;
    guint64 resident;
    guint compute;
    guint64 oversubscribe;
    guint weight;
    guint cap;
    guint priority;
    int display;
    guint engines;
    char *job;
    char *replica;
    char *domain;
    char *owner;
    char *part;
    char *pool;
    char *asked;
    gint64 uid;
    gint64 since;
    gboolean present;
    gboolean defined;
    gboolean autostart;
    gboolean reserved;
    gboolean leaving;
    gboolean suspended;
    guint64 expected[MEMORY_HOURS_OF_DAY];
} Slice;

void slice_free(Slice *slice);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Slice, slice_free)

/*
 * With transport vm, of no tenant, with nothing promised; every text is set, "" if empty. @uuid may
 * be NULL, to be set later. All are copied.
 */
Slice *slice_new(const char *uuid, const char *gpu, const char *type);

/* Sets a text of a slice and frees the old one; @text is copied. */
void slice_set_text(char **where, const char *text);

Slice *slice_copy(const Slice *slice);

/*
 * As a{sv}, to be stored and read again, by another version as well: the promises, and their
 * tenant; not the kernel's state (@present, @reserved, @leaving). Floating.
 */
GVariant *slice_to_dict(const Slice *slice);
Slice *slice_from_dict(GVariant *dict);

/* Of its memory: what is always on the GPU, and what is displaced while others use the GPU. */
guint64 slice_resident(const Slice *slice);
guint64 slice_lent(const Slice *slice);

/* What it is expected to use in that hour of the day of what it is promised. */
guint64 slice_expected(const Slice *slice, guint hour);

/* "guaranteed", "burstable", "best-effort" */
const char *slice_class_name(SliceClass class);

/* FALSE if @name is none of these. */
gboolean slice_class_parse(const char *name, SliceClass *class);

/* "vm", "vfio", "native", "guarded" */
const char *slice_transport_name(SliceTransport transport);

/* FALSE if @name is none of these. */
gboolean slice_transport_parse(const char *name, SliceTransport *transport);

/* It is in the kernel, made by mdevctl; else it is in the ledger and the governor only. */
gboolean slice_is_vgpu(const Slice *slice);

/* It was requested with a transport for containers. */
gboolean slice_is_for_container(const Slice *slice);

/* 1 to 63 of letters, digits, "_", "-", ".", with a letter first and no UUID: a device's name in
 * CDI. */
gboolean slice_name_valid(const char *name);

/* @text, valid UTF-8, has no control characters: it can be printed as it is. */
gboolean slice_text_is_printable(const char *text);

/* An owner, or a part: 1 to 60 of letters, digits, ":", "_", "-", ".", a letter or digit first, so
 * that it is a file name, too. */
gboolean slice_owner_valid(const char *name);

/*
 * Counts in the ledger: it exists, is being made, or will be started at the next boot, and is not
 * suspended.
 */
gboolean slice_is_promised(const Slice *slice);

/*
 * Which of a GPU's engines a slice may use, by the names that people and the arbiter's files use.
 */
/* Bits; 0: all of them. */
typedef enum {
    ENGINE_GRAPHICS = 1 << 0,
    ENGINE_COMPUTE = 1 << 1,
    ENGINE_TRANSFER = 1 << 2,
    ENGINE_DECODE = 1 << 3,
    ENGINE_ENCODE = 1 << 4,
} Engine;

/* "compute,transfer"; "all". To be freed. */
char *engines_format(guint engines);

/*
 * Reads the same, in any order; AGENT_ERROR_INVALID lists the allowed values. Graphics without
 * compute is refused: Vulkan guarantees programs a queue with both if there is one with graphics.
 */
gboolean engines_parse(const char *text, guint *engines, GError **error);

/* What a user with both may use. */
guint engines_join(guint a, guint b);

#endif
