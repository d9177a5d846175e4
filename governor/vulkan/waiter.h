/* SPDX-License-Identifier: MIT */
/*
 * A thread for each queue with metered work. It sees work end, and retires it if the application
 * will not. It never uses the queue itself.
 */
#ifndef GOVERNOR_VULKAN_WAITER_H
#define GOVERNOR_VULKAN_WAITER_H

#include "layer_state.h"

/* Starts it if it does not exist. False: a thread cannot be started. */
bool waiter_start(struct layer_queue *queue);

/* Nothing may be in flight. */
void waiter_stop(struct layer_queue *queue);

#endif /* GOVERNOR_VULKAN_WAITER_H */
