/* SPDX-License-Identifier: MIT */
/*
 * The modes that vgpud was told to give its GPUs: /var/lib/vgpu/gpus.conf, which the registrar
 * reads, too.
 */
#ifndef VGPUD_MODES_WANTED_H
#define VGPUD_MODES_WANTED_H

#include "lib/gpus.h"

/*
 * Stores the mode durably: when it returns, power loss does not undo it. Other GPUs are unchanged.
 */
gboolean wanted_set(const char *root, const char *address, GpuMode mode, guint partitions,
                    GError **error);

#endif
