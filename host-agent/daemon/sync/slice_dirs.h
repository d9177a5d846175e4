/* SPDX-License-Identifier: MIT */
/*
 * The directories of containers' slices. With the door native a slice has its own in
 * /run/vgpu/containers, for the arbiter's socket, and with an owner a link to it in
 * /run/vgpu/owners/OWNER/GPU/NUMBER: a program outside of containers takes OWNER as a whole, with a
 * slice for each GPU. With the door guarded it has one in /run/vgpu/guard, for its guard's sockets.
 */
#ifndef VGPUD_SYNC_SLICE_DIRS_H
#define VGPUD_SYNC_SLICE_DIRS_H

#include "host-agent/daemon/sync/outputs.h"
#include "host-agent/model/slice.h"

/* @uids: of uid_t, who may enter; @of_owner: the same for the directory of its owner. */
void slice_dirs_want(Wants *wants, HostRoot *root, const Slice *slice, const GArray *uids,
                     const GArray *of_owner);

/* UUIDs of slices that have directories, or links of owners to them. To be freed. */
GStrv slice_dirs_list(HostRoot *root);

/* All that the slice can have. */
void slice_dirs_left(Wants *wants, HostRoot *root, const char *uuid);

#endif
