/* SPDX-License-Identifier: MIT */
/*
 * Whether what a submission waits for will come by itself: it has been signalled, or the work that
 * signals it has been submitted and can run. Anything else may need this very thread to continue,
 * so such work is not made to wait for a lease.
 *
 * The signal of a binary semaphore must be submitted before the wait, unless another process
 * signals it.
 */
#ifndef GOVERNOR_VULKAN_SEMAPHORE_H
#define GOVERNOR_VULKAN_SEMAPHORE_H

#include "layer_state.h"

/* @value is that of a timeline semaphore; otherwise it is ignored. */
bool semaphore_is_open(struct layer_device *device, VkSemaphore semaphore, uint64_t value);

/* True if one of the first @count is open; @values may be NULL. */
bool semaphores_open(struct layer_device *device, uint32_t count, const VkSemaphore *semaphores,
                     const uint64_t *values);

/*
 * Work that is not deferred and signals @value has been submitted; work that waits for it has been
 * submitted.
 */
void semaphore_will_reach(struct layer_device *device, VkSemaphore semaphore, uint64_t value);
void semaphore_was_waited_for(struct layer_device *device, VkSemaphore semaphore);

/* For handle_map_destroy(). */
void semaphore_forget(void *record, void *data);

LAYER_COMMAND(CreateSemaphore);
LAYER_COMMAND(DestroySemaphore);
LAYER_COMMAND(ImportSemaphoreFdKHR);
LAYER_COMMAND(GetSemaphoreFdKHR);

#endif /* GOVERNOR_VULKAN_SEMAPHORE_H */
