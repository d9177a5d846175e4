/* SPDX-License-Identifier: MIT */
#ifndef GOVERNOR_VULKAN_WAIT_H
#define GOVERNOR_VULKAN_WAIT_H

#include "layer_state.h"

LAYER_COMMAND(WaitForFences);
LAYER_COMMAND(GetFenceStatus);
LAYER_COMMAND(ResetFences);
LAYER_COMMAND(DestroyFence);
LAYER_COMMAND(WaitSemaphores);

#endif /* GOVERNOR_VULKAN_WAIT_H */
