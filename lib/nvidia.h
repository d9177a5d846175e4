/* SPDX-License-Identifier: MIT */
/*
 * What NVIDIA's driver says in /proc/driver/nvidia of its GPUs. Written from its documentation, not
 * tried on the hardware.
 */
#ifndef INVENTORY_NVIDIA_H
#define INVENTORY_NVIDIA_H

#include <glib.h>

/* The number in /dev/nvidiaN of the GPU at @address; -1: it is not one of that driver's. */
int nvidia_minor(const char *root, const char *address);

/* Its MIG instances, as "gi1"; empty where there are none. To be freed. */
GStrv nvidia_instances(const char *root, const char *address);

#endif
