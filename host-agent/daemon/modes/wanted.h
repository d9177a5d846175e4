/* SPDX-License-Identifier: MIT */
/*
 * The modes that vgpud was told to give its GPUs: /var/lib/vgpu/gpus.conf, which the registrar
 * reads, too.
 */
#ifndef VGPUD_MODES_WANTED_H
#define VGPUD_MODES_WANTED_H

#include "lib/gpus.h"
#include "lib/host_root.h"

/*
 * Stores the mode durably: when it returns, power loss does not undo it. Other GPUs are unchanged.
 */
gboolean wanted_set(HostRoot *root, const char *address, GpuMode mode, guint partitions,
                    GError **error);

/* Where the GPU's wanted mode is from, of @declared (gpus_load_conf()) and @set
 * (gpus_load_state()), which may be NULL: "declared", "by command", "by command, declared
 * otherwise"; "": no mode is wanted. */
const char *wanted_source(const GPtrArray *declared, const GPtrArray *set, const char *address);

/* Forgets the modes that were set for GPUs that gpus.conf names. @changes: a sentence for each that
 * differs. */
gboolean wanted_apply(HostRoot *root, gboolean dry_run, GStrvBuilder *changes, GError **error);

#endif
