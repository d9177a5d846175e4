/* SPDX-License-Identifier: MIT */
/*
 * A host's vGPUs as the driver tells of them, read often and for many. Of a vGPU that no VM has
 * open only `state` is read, because nothing else changes, and not even that if the driver's events
 * report its changes.
 */
#ifndef VGPUD_ENGINES_VGPU_STATES_H
#define VGPUD_ENGINES_VGPU_STATES_H

#include "lib/host_root.h"
#include "lib/vgpu.h"

typedef struct VgpuStates VgpuStates;

VgpuStates *vgpu_states_new(HostRoot *root);

void vgpu_states_free(VgpuStates *states);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VgpuStates, vgpu_states_free)

/* The values of @vgpu were read. @is_new: for the first time; one of that UUID is another vGPU. */
typedef void (*VgpuReadFunc)(const Vgpu *vgpu, gboolean is_new, void *data);

/* @func is called at each of these readings. */
void vgpu_states_follow(VgpuStates *states, VgpuReadFunc func, void *data);

/*
 * Of Vgpu, in the order of their UUIDs. Owned by @states, valid until the next call. Reads the
 * values that have changed.
 */
const GPtrArray *vgpu_states_look(VgpuStates *states);

/* One of them, as it was read last; NULL: it was not, or has gone. Valid as long. */
const Vgpu *vgpu_states_known(const VgpuStates *states, const char *uuid);

/* One of them, read completely now; NULL: there is no such vGPU (any more). Valid as long. */
const Vgpu *vgpu_states_read_one(VgpuStates *states, const char *uuid);

/*
 * @watched: from now on vgpu_states_forget() is called for each vGPU that changes, so closed ones
 * need not be read. Not so at first.
 */
void vgpu_states_set_watched(VgpuStates *states, gboolean watched);

/*
 * The vGPU's parameters (VRAM, weight …) may have changed. They are read again the next time, which
 * is otherwise not done while it is closed. NULL: all vGPUs.
 */
void vgpu_states_forget(VgpuStates *states, const char *uuid);

/* A number that changes whenever something that can have changed is read. */
guint64 vgpu_states_serial(const VgpuStates *states);

/* Nothing can have changed since the last look; needs vgpu_states_set_watched(). */
gboolean vgpu_states_rest(const VgpuStates *states);

#endif
