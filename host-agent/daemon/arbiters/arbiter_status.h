/* SPDX-License-Identifier: MIT */
/*
 * What an arbiter says of its slices (vgpu-arbiter(8), "Status").
 */
#ifndef ARBITER_STATUS_H
#define ARBITER_STATUS_H

#include <glib.h>

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

typedef void (*SliceUseFunc)(const char *slice, const SliceUse *use, void *data);

/*
 * Asks the arbiter of @gpu, and calls @func for each of its slices. Waits 200 ms at most; FALSE where there is no
 * arbiter, or no whole answer.
 */
gboolean arbiter_status_read(const char *root, const char *gpu, SliceUseFunc func, void *data);

#endif
