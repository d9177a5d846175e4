/* SPDX-License-Identifier: MIT */
/*
 * The settings of a GPU's arbiter (vgpu-arbiter(8)): a keyfile for the GPU and one for each slice,
 * below /run/vgpu/governor/GPU. The arbiter follows them, and reads them again when it or vgpud has
 * restarted.
 */
#ifndef VGPUD_ENGINES_ARBITER_H
#define VGPUD_ENGINES_ARBITER_H

#include <gio/gio.h>

#include "host-agent/model/slice.h"
#include "lib/gpus.h"
#include "lib/host_root.h"

#define GOVERNOR_DIR "/run/vgpu/governor"

/* The folder of a GPU's slices, that of a GPU, and their files; to be freed. */
char *shares_dir(const char *gpu);
char *shares_gpu_dir(const char *gpu);
char *shares_slice_path(const char *gpu, const char *uuid);
char *shares_ungoverned_path(const char *gpu, const char *uuid);
char *shares_gpu_path(const char *gpu);

/* What is in them. To be freed. */
char *shares_slice_text(const Slice *slice);
/* @capacity, @displaced: bytes of the GPU and of the host for memory that moves; 0: none does. */
char *shares_gpu_text(guint64 vram, GpuPolicy policy, guint64 capacity, guint64 displaced);

/*
 * UUIDs of the slices that have a file there, to be freed. A slice whose name is no UUID is not
 * vgpud's.
 */
GStrv shares_list(HostRoot *root, const char *gpu);

/* What of the slice's memory is displaced is to come back. */
gboolean shares_warm(HostRoot *root, const Slice *slice, GError **error);

/*
 * What the slice's processes use that no member of its arbiter reports: bytes of memory now, and
 * GPU time so far. Both 0: nothing, and no file.
 */
gboolean shares_put_ungoverned(HostRoot *root, const Slice *slice, guint64 memory, guint64 gpu_ns,
                               GError **error);
void shares_forget_ungoverned(HostRoot *root, const char *gpu, const char *uuid);
/* Of all slices of all GPUs. */
void shares_forget_all_ungoverned(HostRoot *root);

/* An arbiter's report on its slices (vgpu-arbiter(8), "Status"). */
/**
 * SliceUse - since the arbiter knows the slice
 * @members: processes that use the GPU for it now
 * @vram_used: bytes of GPU memory
 * @vram_ungoverned: the part of it that no member has requested
 * @vram_peak: the most at one time, however briefly
 * @spilled: bytes beyond its GPU memory
 * @spill_kind: where these go: "spill", to host memory; "driver", wherever the GPU's driver pages
 * them; "none": none allowed. Interned
 * @submissions: of work to the GPU
 * @gpu_ns: measured GPU time, and @ungoverned_ns
 * @ungoverned_ns: GPU time that no member has reported
 * @alone: it is alone on its GPU, and not measured now
 * @alone_ns, @alone_known: its GPU time while it was alone, and whether the GPU's driver reports it
 * (alone_time.h; not from the arbiter)
 * @waited_ns: how long its work waited for others'
 * @throttled_ns: how long its own cap delayed it
 * @resident, @displaced: of its memory, what is on the GPU and in the host's memory now;
 * @unmovable: of @resident what cannot move
 * @missing: what it waits for in vain, because best effort has it and does not give it
 * @moved: bytes, both ways
 * @memory_waited_ns: how long its programs waited for their memory
 */
typedef struct {
    guint members;
    guint64 resident;
    guint64 unmovable;
    guint64 displaced;
    guint64 missing;
    guint64 moved;
    guint64 memory_waited_ns;
    guint64 vram_used;
    guint64 vram_ungoverned;
    guint64 vram_peak;
    guint64 spilled;
    const char *spill_kind;
    guint64 submissions;
    guint64 gpu_ns;
    guint64 ungoverned_ns;
    gboolean alone;
    guint64 alone_ns;
    gboolean alone_known;
    guint64 waited_ns;
    guint64 throttled_ns;
} SliceUse;

/*
 * All its GPU time, measured or not. FALSE: it is not known, because the slice is alone on a GPU
 * whose driver does not report it.
 */
gboolean slice_use_gpu_ns(const SliceUse *use, guint64 *ns);

/*
 * Timeout of an arbiter's answer. Only tests change it: on a busy machine their arbiter, a thread,
 * is later than that, and would count as one that hangs.
 */
#define ARBITER_WAIT_US (200 * 1000)
extern _Atomic gint64 arbiter_wait_us;

typedef enum {
    ARBITER_ANSWERS,
    ARBITER_RESTARTED, /* it answers, but members of before its restart may not be back */
    ARBITER_AWAY,      /* there is none now: it was not started, or is being restarted */
    ARBITER_SILENT,    /* it was waited for in vain, or has said nothing that can be read */
} ArbiterAnswer;

/* @pids: the processes that use the GPU for it now (guint). */
typedef void (*SliceUseFunc)(const char *slice, const SliceUse *use, GArray *pids, void *data);

/*
 * Asks the arbiter of @gpu, and calls @func for each of its slices. Waits arbiter_wait_us at most.
 */
ArbiterAnswer arbiter_read_status(HostRoot *root, const char *gpu, SliceUseFunc func, void *data);

/*
 * A text while no process uses @gpu by its arbiter; NULL otherwise. As long as it is the same, so
 * is the arbiter's report. To be freed.
 */
char *arbiter_rest_read(HostRoot *root, const char *gpu);

/* The file that arbiter_rest_read() reads, for those who wait for a change. */
GFile *arbiter_rest_file(HostRoot *root, const char *gpu);

/**
 * SliceMembers
 * @pids: of guint
 * @used: bytes of GPU memory
 * @requested: the part of it that they have requested
 * @since_ns: when this arbiter began to know the slice, of CLOCK_BOOTTIME; 0: it does not say so
 */
typedef struct {
    GArray *pids;
    guint64 used;
    guint64 requested;
    guint64 since_ns;
} SliceMembers;

/* A table of slices' names to SliceMembers, empty. To be unreferenced. */
GHashTable *slice_members_new(void);

/* Adds all slices whose processes the arbiter tells to @members. */
ArbiterAnswer arbiter_read_members(HostRoot *root, const char *gpu, GHashTable *members);

#endif
