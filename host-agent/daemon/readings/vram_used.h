/* SPDX-License-Identifier: MIT */
/*
 * How much of a GPU's memory is in use.
 */
#ifndef HEALTH_VRAM_USED_H
#define HEALTH_VRAM_USED_H

#include "host-agent/daemon/readings/counters.h"
#include "lib/pci.h"

/*
 * Bytes in use on the GPU now, by whomever: what its driver says (amdgpu); else, on hosts for tests
 * whose GPUs stand in for others, what the file /run/vgpu/vram-used/ADDRESS below @root says; else
 * what the engines of its vGPUs have. @vgpus: of VgpuCounters, all of the host. FALSE: nobody tells.
 */
gboolean vram_used(const char *root, const PciDevice *pci, const GPtrArray *vgpus, guint64 *bytes);

#endif
