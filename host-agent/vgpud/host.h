/* SPDX-License-Identifier: MIT */
/*
 * The host on D-Bus: its GPUs, kept as they are in the kernel.
 */
#ifndef VGPUD_HOST_H
#define VGPUD_HOST_H

#include <gio/gio.h>

#include "inventory.h"

typedef struct Host Host;

/* @inventory: stays the caller's, and lives longer. Exports the objects on @bus. */
Host *host_new(GDBusConnection *bus, Inventory *inventory);

void host_free(Host *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Host, host_free)

/* Reads the inventory anew and tells the bus what has changed. */
void host_refresh(Host *host);

#endif
