/* SPDX-License-Identifier: MIT */
/*
 * vGPUs as they are listed.
 */
#ifndef VGPUCTL_VGPU_H
#define VGPUCTL_VGPU_H

#include "host-agent/vgpuctl/client.h"
#include "host-agent/vgpuctl/listing.h"

extern const Listing vgpu_listing;

/* All vGPUs that the caller may see, of aa{sv}, each with the VM that has it as its member Vm. */
GVariant *vgpu_list_all(const Client *client, GError **error);

#endif
