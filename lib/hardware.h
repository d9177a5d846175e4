/* SPDX-License-Identifier: MIT */
/* A physical GPU in sysfs. */
#ifndef LIB_HARDWARE_H
#define LIB_HARDWARE_H

#include <glib.h>

#include "lib/host_root.h"

/**
 * Hardware - a PCI display device
 * @driver: name of the bound driver
 * @ids: "vendor:device", four hex digits each
 */
typedef struct {
    char *dir;
    char *driver;
    char *ids;
} Hardware;

void hardware_free(Hardware *hardware);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hardware, hardware_free)

/*
 * @address: a PCI address. REGISTRAR_ERROR_ABSENT: no such device, or no driver bound to it;
 * REGISTRAR_ERROR_REFUSED: not a GPU, or one that is assigned as a whole.
 */
Hardware *hardware_find(HostRoot *root, const char *address, GError **error);

/*
 * The memory of the GPU at @dir in sysfs, which has @driver, and in @source the origin of that
 * number. The best source is used: the vendor driver's own count, else the largest prefetchable
 * BAR.
 */
gboolean hardware_vram(HostRoot *root, const char *dir, const char *driver, guint64 *bytes,
                       char **source, GError **error);

/*
 * GPUs in NVIDIA's /proc/driver/nvidia. Written from its documentation, not tried on the hardware.
 */
/* The number in /dev/nvidiaN of the GPU at @address; -1: it does not have that driver. */
int nvidia_minor(HostRoot *root, const char *address);

/* Its MIG instances, as "gi1"; empty if there are none. To be freed. */
GStrv nvidia_instances(HostRoot *root, const char *address);

/*
 * What KVM before Linux 6.13 does to a vGPU's window. It takes a reference to each page that it
 * maps, and refuses (EFAULT) one that has none of its own, as tail pages of the blocks that GPU
 * drivers allocate; QEMU then stops. And what it maps for a nested guest it keeps when the driver
 * takes the page back. 6.13 does neither.
 */
/* What to do about it, the end of a sentence. */
#define HOST_KERNEL_NEWER                                                                          \
    "install Linux 6.13 or newer; Debian 13 has one in its backports: apt install -t "             \
    "trixie-backports linux-image-amd64 linux-headers-amd64"

/* In the form of uname -r; NULL: unknown. To be freed. */
char *host_kernel_release(HostRoot *root);

/* It is older than 6.13. NULL, or a release that cannot be parsed, is not. */
gboolean host_kernel_is_old(const char *release);

/* Its KVM refuses memory of a GPU that has @driver (NULL: none): the driver allocates blocks, by
 * TTM or as huge pages. */
gboolean host_kernel_refuses(const char *release, const char *driver);

#endif
