/* SPDX-License-Identifier: MIT */
/* The VM's render nodes, and which of them are vGPUs with CUDA. */
#ifndef GUEST_PACKAGE_NODES_H
#define GUEST_PACKAGE_NODES_H

#include "control.h"

#define NODES_FIRST 128
#define NODES       64
#define NODE_PATH   "/dev/dri/renderD%d"

enum node_state { NODE_NONE, NODE_OTHER, NODE_CLOSED, NODE_OLD_KERNEL, NODE_NO_CUDA, NODE_CUDA };

/* Of the node /dev/dri/renderD@number. @caps: filled if it is NODE_CUDA. */
enum node_state node_look(int number, struct control_caps *caps);

#endif
