/* SPDX-License-Identifier: MIT */
/* What clusters know a GPU by: its model, its own number, and what is near it. */
#ifndef LIB_GPU_IDENTITY_H
#define LIB_GPU_IDENTITY_H

#include <glib.h>

#include "lib/host_root.h"
#include "lib/pci.h"

/*
 * "a100-80g": lower-case letters, digits, "-" and ".", fewer than 40; the same on every host that
 * has the same pci.ids. From the name in brackets, without what it says of connectors and memory,
 * and the memory in GiB. To be freed.
 */
char *gpu_model(const char *name, const PciDevice *pci, guint64 vram);

/* Of the card, by its driver; "": not known. To be freed. */
char *gpu_uuid(HostRoot *root, const PciDevice *pci);

/* As "0-31,64-95"; "": all, or not known. To be freed. */
char *gpu_local_cpus(HostRoot *root, const PciDevice *pci);

/* As "pci0000:40"; "": it has no PCI device. To be freed. */
char *gpu_pcie_root(const PciDevice *pci);

#endif
