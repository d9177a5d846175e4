/* SPDX-License-Identifier: MIT */
/*
 * Which driver a PCI device is bound to. These calls take as long as the drivers do.
 */
#ifndef MODES_BINDING_H
#define MODES_BINDING_H

#include <glib.h>

/* Takes a device from its driver and gives it to vfio-pci. One that has it already is no error. */
gboolean binding_to_vfio(const char *root, const char *address, GError **error);

/*
 * Gives a device back to the driver that the kernel would have chosen. One that has a driver, other
 * than vfio-pci, stays with it.
 */
gboolean binding_give_back(const char *root, const char *address, GError **error);

/* Loads vfio-pci, by systemd, where it is not there. */
gboolean binding_load_vfio(const char *root, GError **error);

#endif
