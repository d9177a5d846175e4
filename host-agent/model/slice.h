/* SPDX-License-Identifier: MIT */
/*
 * A part of a GPU that is promised to somebody: a vGPU of a VM, or a container's slice.
 */
#ifndef MODEL_SLICE_H
#define MODEL_SLICE_H

#include <glib.h>

/* How firm the promise is, in the words that fleets use. */
typedef enum {
    SLICE_GUARANTEED,  /* all of it, always */
    SLICE_BURSTABLE,   /* its compute is a floor; it may use more, and the VRAM may be overcommitted */
    SLICE_BEST_EFFORT, /* what is left; the first to go when memory is short */
} SliceClass;

/* How its user comes to the GPU. */
typedef enum {
    SLICE_TRANSPORT_VM,      /* a vGPU, given to a VM by libvirt or by hand */
    SLICE_TRANSPORT_VFIO,    /* a vGPU, whose VFIO group is given to a container */
    SLICE_TRANSPORT_NATIVE,  /* the GPU's own nodes, and the governor's layer in the container */
    SLICE_TRANSPORT_GUARDED, /* no node: a socket to a vgpu-guard of its own */
} SliceTransport;

/**
 * Slice
 * @uuid: of the vGPU, or made up for a container's slice
 * @transport: the door by which its user comes to the GPU; by the first two it is a vGPU, which the kernel has
 * @name: by which commands and containers may ask for it as well as by @uuid; "": none
 * @ephemeral: given back when its container ends
 * @request: of the call that made it: all of one request are made, or none
 * @gpu: address of its GPU
 * @type: its mdev type, as sysfs has it; "": a container's slice of a size of its own
 * @tenant: "" : nobody's
 * @vram: bytes promised
 * @compute: per cent of the GPU promised; 0 for best effort
 * @oversubscribe: bytes of host memory that may stand in for GPU memory beyond @vram
 * @display: how many displays its vGPU has, 0 or 1; -1: not known, or no vGPU
 * @engines: of Engine, that it may use; 0: all
 * @job: slices of one job are put near each other; "": none
 * @replica: slices of one replica name are kept on different GPUs; "": none
 * @domain: name of the libvirt domain that it is made for and goes with; "": none
 * @present: the kernel has it; always, where it is no vGPU
 * @defined: it is in mdevctl's configuration
 * @autostart: and started at boot
 * @reserved: room is kept for it while it is being made or started
 * @leaving: it is being removed: nobody new gets it
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
    gboolean present;
    gboolean defined;
    gboolean autostart;
    gboolean reserved;
    gboolean leaving;
} Slice;

void slice_free(Slice *slice);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Slice, slice_free)

/*
 * Of the door vm, of no tenant, with nothing promised; every text is there, "" if there is nothing to
 * say. @uuid may be NULL, to be set later. All are copied.
 */
Slice *slice_new(const char *uuid, const char *gpu, const char *type);

/* Sets a text of a slice, which is freed first; @text is copied. */
void slice_set_text(char **where, const char *text);

Slice *slice_copy(const Slice *slice);

/*
 * As a{sv}, to be kept and read again, by another version as well: what is promised, and to whom;
 * not what the kernel has (@present, @reserved, @leaving). Floating.
 */
GVariant *slice_to_dict(const Slice *slice);
Slice *slice_from_dict(GVariant *dict);

/* "guaranteed", "burstable", "best-effort" */
const char *slice_class_name(SliceClass class);

/* FALSE where @name is none of these. */
gboolean slice_class_parse(const char *name, SliceClass *class);

/* "vm", "vfio", "native", "guarded" */
const char *slice_transport_name(SliceTransport transport);

/* FALSE where @name is none of these. */
gboolean slice_transport_parse(const char *name, SliceTransport *transport);

/* The kernel has it, mdevctl makes it; else it is in the ledger and the governor alone. */
gboolean slice_is_vgpu(const Slice *slice);

/* Asked for by the name of a door for containers. */
gboolean slice_is_for_container(const Slice *slice);

/* 1 to 63 of letters, digits, "_", "-", ".", with a letter first and no UUID: a device's name in CDI. */
gboolean slice_name_valid(const char *name);

/* Counts in the ledger: it is there, is being made, or will be there at the next boot. */
gboolean slice_is_promised(const Slice *slice);

/*
 * Which of a GPU's engines a slice may use, as people and the arbiter's files name them.
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
 * Reads the same, in any order; AGENT_ERROR_INVALID says what it may be. Graphics without compute is
 * refused: Vulkan promises programs a queue with both where there is one with graphics.
 */
gboolean engines_parse(const char *text, guint *engines, GError **error);

/* What somebody may use who has both. */
guint engines_join(guint a, guint b);

#endif
