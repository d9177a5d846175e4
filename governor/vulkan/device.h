/* SPDX-License-Identifier: MIT */
/* Instances and devices, as they are made and destroyed. */
#ifndef GOVERNOR_VULKAN_DEVICE_H
#define GOVERNOR_VULKAN_DEVICE_H

#include "layer_state.h"

LAYER_COMMAND(CreateInstance);
LAYER_COMMAND(DestroyInstance);
LAYER_COMMAND(CreateDevice);
LAYER_COMMAND(DestroyDevice);
LAYER_COMMAND(DeviceWaitIdle);

#endif /* GOVERNOR_VULKAN_DEVICE_H */
