/* SPDX-License-Identifier: MIT */
/*
 * What the arbiter of a GPU is told (vgpu-arbiter(8)): a keyfile for the GPU and one for each slice, below
 * /run/vgpu/governor/GPU. A file is written whole or not at all, and only where it would be another; the arbiter
 * follows it, and finds it again when it or vgpud has been restarted.
 */
#ifndef VGPUD_ENGINES_ARBITER_H
#define VGPUD_ENGINES_ARBITER_H

#include <glib.h>

#include "host-agent/model/slice.h"
#include "lib/gpus.h"

#define GOVERNOR_DIR "run/vgpu/governor"

/*
 * The GPU's file and those of its vGPUs in @slices (of Slice; of other GPUs, or not present: not taken), and of no
 * others; a slice whose name is no UUID is not vgpud's, and stays. FALSE where a file can't be written; the others are.
 */
gboolean shares_sync(const char *root, const char *gpu, guint64 vram, GpuPolicy policy,
                     const GPtrArray *slices, GError **error);

/* The file of one slice, whose GPU has its files already. */
gboolean shares_put(const char *root, const Slice *slice, GError **error);

/* The slice is nowhere any more. */
void shares_forget(const char *root, const char *gpu, const char *uuid);

/* The GPU is not shared any more: all its files go. */
void shares_drop(const char *root, const char *gpu);

/*
 * What an arbiter says of its slices (vgpu-arbiter(8), "Status").
 */
/**
 * SliceUse - since the arbiter knows the slice
 * @members: processes that use the GPU for it now
 * @vram_used: bytes of GPU memory
 * @spilled: bytes beyond its GPU memory
 * @spill_kind: where these go: "spill", to host memory; "driver", wherever the GPU's driver pages
 * them; "none": it may have none. Interned
 * @submissions: of work to the GPU
 * @gpu_ns: GPU time that was measured
 * @waited_ns: how long its work waited for others'
 * @throttled_ns: how long its own cap held it back
 */
typedef struct {
    guint members;
    guint64 vram_used;
    guint64 spilled;
    const char *spill_kind;
    guint64 submissions;
    guint64 gpu_ns;
    guint64 waited_ns;
    guint64 throttled_ns;
} SliceUse;

/* How long an arbiter has for its answer. */
#define ARBITER_WAIT_US (200 * 1000)

typedef void (*SliceUseFunc)(const char *slice, const SliceUse *use, void *data);

/*
 * Asks the arbiter of @gpu, and calls @func for each of its slices. Waits ARBITER_WAIT_US at most; FALSE where there is no
 * arbiter, or no whole answer.
 */
gboolean arbiter_status_read(const char *root, const char *gpu, SliceUseFunc func, void *data);

#endif
