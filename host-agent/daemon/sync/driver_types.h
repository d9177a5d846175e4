/* SPDX-License-Identifier: MIT */
/* The vGPU driver is told which types and how much memory /etc/vgpu gives its GPUs. */
#ifndef VGPUD_SYNC_DRIVER_TYPES_H
#define VGPUD_SYNC_DRIVER_TYPES_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/slices/offers.h"

/*
 * Tells the driver of all registered GPUs that gpus.conf shares, as @offers has them. If it refuses
 * one, those before it are as in @before again: AGENT_ERROR_FAILED with the driver's reason. GPUs
 * that are shared without the driver are left out.
 */
gboolean driver_types_update(const Host *host, const Offers *before, const Offers *offers,
                             GError **error);

#endif
