/* SPDX-License-Identifier: MIT */
/*
 * What sysfs says about a physical GPU.
 */
#ifndef LIB_HARDWARE_H
#define LIB_HARDWARE_H

#include <glib.h>

/**
 * Hardware - a PCI display device
 * @driver: name of the driver that is bound to it
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
 * REGISTRAR_ERROR_REFUSED: not a GPU, or one that is given away whole.
 */
Hardware *hardware_find(const char *root, const char *address, GError **error);

/*
 * The memory of the GPU at @dir in sysfs, which has @driver, and in @source where the number came
 * from. The best source there is: the vendor driver's own count, else the largest prefetchable BAR.
 */
gboolean hardware_vram(const char *dir, const char *driver, guint64 *bytes, char **source,
                       GError **error);

/*
 * What NVIDIA's driver says in /proc/driver/nvidia of its GPUs. Written from its documentation, not
 * tried on the hardware.
 */
/* The number in /dev/nvidiaN of the GPU at @address; -1: it is not one of that driver's. */
int nvidia_minor(const char *root, const char *address);

/* Its MIG instances, as "gi1"; empty where there are none. To be freed. */
GStrv nvidia_instances(const char *root, const char *address);

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

/* Of the host below @root, as uname -r has it; NULL: unknown. To be freed. */
char *host_kernel_release(const char *root);

/* It is older than 6.13. NULL, or what can't be told, is not. */
gboolean host_kernel_is_old(const char *release);

/* Its KVM refuses memory of a GPU that has @driver (NULL: none): the driver allocates blocks, by
 * TTM or as huge pages. */
gboolean host_kernel_refuses(const char *release, const char *driver);

#endif
