/* SPDX-License-Identifier: MIT */
/*
 * What sysfs says about a physical GPU.
 */
#ifndef REGISTRAR_HARDWARE_H
#define REGISTRAR_HARDWARE_H

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

#endif
