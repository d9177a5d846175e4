/* SPDX-License-Identifier: MIT */
/*
 * What the vGPUs of a host have done so far, read often and for many of them: of a vGPU that no VM
 * has open only `state` is read, because nothing else of it moves, and not even that where the driver's events say when
 * it changes.
 */
#ifndef VGPUD_ENGINES_COUNTERS_H
#define VGPUD_ENGINES_COUNTERS_H

#include "host-agent/daemon/engines/arbiter.h"
#include "lib/drm_clients.h"
#include "lib/pci.h"
#include "lib/vgpu.h"

/**
 * VgpuCounters - of one vGPU, since it was made
 * @vgpu: what the driver says, and what of it counts
 * @drm: GPU time and memory of its engine, where the GPU's driver tells
 * @slice: what its GPU's arbiter says; of use where @slice_known
 */
typedef struct {
    Vgpu *vgpu;
    guint64 window_faults;
    guint64 window_published;
    guint64 pinned;
    DrmUse drm;
    SliceUse slice;
    gboolean slice_known;
} VgpuCounters;

typedef struct Counters Counters;

/* @root: "" in production, else a directory that stands for /. */
Counters *counters_new(const char *root);

void counters_free(Counters *counters);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Counters, counters_free)

/*
 * @source: called with each reading of all, to put in what others count (counters_put_use()); NULL: none.
 */
void counters_set_source(Counters *counters, void (*source)(Counters *counters, void *data),
                         void *data);

/* What an arbiter counts for a vGPU that was read before, or for a slice that is none. */
void counters_put_use(Counters *counters, const char *uuid, const SliceUse *use);

/* The last of that of a slice which is no vGPU; NULL: nobody has told. Valid until the next counters_read(). */
const SliceUse *counters_use(const Counters *counters, const char *uuid);

/* GPU memory that it has, as the GPU's driver tells, else as the arbiter does; FALSE: nobody tells. */
gboolean counters_vram(const VgpuCounters *counters, guint64 *bytes);

/*
 * Of VgpuCounters, in the order of their UUIDs. Belongs to @counters, valid until the next call.
 * What has moved is read now.
 */
const GPtrArray *counters_read(Counters *counters);

/* The one in such a list; NULL: it is not there. */
const VgpuCounters *counters_find(const GPtrArray *list, const char *uuid);

/* One of them, all of it read now; NULL: there is no such vGPU (any more). Valid as long. */
const VgpuCounters *counters_read_one(Counters *counters, const char *uuid);

/*
 * From now on counters_forget() is called for each vGPU that changes: so of those that are closed nothing has to be
 * read.
 */
void counters_watched(Counters *counters);

/*
 * The vGPU's parameters (VRAM, weight …) may have been changed; they are read anew the next time,
 * which is else not done as long as it is closed. NULL: those of all.
 */
void counters_forget(Counters *counters, const char *uuid);

/*
 * How much of a GPU's memory is in use.
 */
/*
 * Bytes in use on the GPU now, by whomever: what its driver says (amdgpu); else, on hosts for tests
 * whose GPUs stand in for others, what the file /run/vgpu/vram-used/ADDRESS below @root says; else
 * what the engines of its vGPUs have. @vgpus: of VgpuCounters, all of the host. FALSE: nobody tells.
 */
gboolean gpu_vram_used(const char *root, const PciDevice *pci, const GPtrArray *vgpus, guint64 *bytes);

#endif
