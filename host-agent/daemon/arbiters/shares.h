/* SPDX-License-Identifier: MIT */
/*
 * What the arbiter of a GPU is told (vgpu-arbiter(8)): a keyfile for the GPU and one for each slice, below
 * /run/vgpu/governor/GPU. A file is written whole or not at all, and only where it would be another; the arbiter
 * follows it, and finds it again when it or vgpud has been restarted.
 */
#ifndef ARBITER_SHARES_H
#define ARBITER_SHARES_H

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

#endif
