/* SPDX-License-Identifier: MIT */
/*
 * The user of an engine's native slices may open their GPU's nodes: by an entry in each node's ACL
 * from the first slice of that user on that GPU to the last. /run/vgpu/node-users notes, before it
 * is made, each entry that was missing; others are never touched. It lives as long as the nodes.
 */
#ifndef VGPUD_SYNC_NODE_ACCESS_H
#define VGPUD_SYNC_NODE_ACCESS_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/sync/outputs.h"

typedef struct NodeAccess NodeAccess;

/* All live longer. */
NodeAccess *node_access_new(Host *host, Outputs *outputs, const Slices *slices);

/* Entries stay, as the slices do. */
void node_access_free(NodeAccess *access);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NodeAccess, node_access_free)

/* The slices are known. Finishes what an earlier vgpud has left. Before, nothing is done. */
void node_access_start(NodeAccess *access);

/* A slice was made, changed or removed. */
void node_access_update(NodeAccess *access);

/* GPUs or their nodes may be others, or their ACLs. */
void node_access_refresh(NodeAccess *access);

/*
 * Removes all entries that are vgpud's: the package goes, and vgpud with it, which does not run any
 * more. FALSE: some could not be, which is printed.
 */
gboolean node_access_take_back(HostRoot *root);

#endif
