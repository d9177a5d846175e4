/* SPDX-License-Identifier: MIT */
/*
 * A host's PCI devices from a file in hosts/: a line for each,
 *
 *   PATH KEY=VALUE…
 *
 * PATH is its path below /sys/devices, and KEY one of class, vendor, device, driver, group, numa,
 * link ("CURRENT SPEED/WIDTH,MAX SPEED/WIDTH"), vram, bar, drm, types, totalvfs, vfs, physfn. Lists
 * are separated by ",". Lines that begin with "#" describe the host.
 */
#ifndef TESTS_UNIT_RECORDED_HOST_H
#define TESTS_UNIT_RECORDED_HOST_H

#include <glib.h>

#include "lib/host_root.h"

/* A new file tree with the host's devices. */
HostRoot *recorded_host_new(const char *name);

/* Adds one device to a tree, from such a line. */
void recorded_host_add(HostRoot *root, const char *line);

/*
 * Adds a vGPU of ours on the device at @path below /sys/devices. @attributes: "KEY=VALUE" separated
 * by
 * "|", files of its directory "vgpu".
 */
void recorded_host_add_vgpu(HostRoot *root, const char *path, const char *uuid, const char *type,
                            const char *attributes);

/* Removes a vGPU. */
void recorded_host_remove_vgpu(HostRoot *root, const char *uuid);

/* Removes a device, as when it is unplugged. */
void recorded_host_remove(HostRoot *root, const char *address);

#endif
