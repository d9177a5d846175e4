/* SPDX-License-Identifier: MIT */
/*
 * All physical GPUs of the host.
 */
#ifndef INVENTORY_INVENTORY_H
#define INVENTORY_INVENTORY_H

#include "lib/gpu.h"

typedef struct Inventory Inventory;

/* @root: "" in production, else a directory that stands for /. */
Inventory *inventory_new(const char *root);

void inventory_free(Inventory *inventory);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Inventory, inventory_free)

const char *inventory_root(const Inventory *inventory);

/*
 * Reads all of it anew; of Gpu, in the order of their addresses. GPUs are what says so of itself,
 * and what gpus.conf names: PCI devices of any class, and "soft:NAME". Where that file is broken it
 * counts as it was before.
 */
GPtrArray *inventory_read(Inventory *inventory);

#endif
