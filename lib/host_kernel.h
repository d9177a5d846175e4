/* SPDX-License-Identifier: MIT */
/*
 * What KVM before Linux 6.13 does to a vGPU's window. It takes a reference to each page that it
 * maps, and refuses (EFAULT) one that has none of its own, as tail pages of the blocks that GPU
 * drivers allocate; QEMU then stops. And what it maps for a nested guest it keeps when the driver
 * takes the page back. 6.13 does neither.
 */
#ifndef REGISTRAR_HOST_KERNEL_H
#define REGISTRAR_HOST_KERNEL_H

#include <glib.h>

/* What to do about it, the end of a sentence. */
#define HOST_KERNEL_NEWER                                                                          \
    "install Linux 6.13 or newer; Debian 13 has one in its backports: apt install -t "             \
    "trixie-backports linux-image-amd64 linux-headers-amd64"

/* Of the host below @root, as uname -r has it; NULL: unknown. To be freed. */
char *host_kernel_release(const char *root);

/* It is older than 6.13. NULL, or what can't be told, is not. */
gboolean host_kernel_is_old(const char *release);

/* Its KVM refuses memory of a GPU that has @driver (NULL: none): the driver allocates blocks, by
 * TTM or as huge pages. */
gboolean host_kernel_refuses(const char *release, const char *driver);

#endif
