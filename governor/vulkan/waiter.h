/* SPDX-License-Identifier: MIT */
/*
 * A thread for each queue with metered work: it sees work end, and retires it where the application
 * is not going to. It never uses the queue itself.
 */
#ifndef GOVERNOR_VULKAN_WAITER_H
#define GOVERNOR_VULKAN_WAITER_H

#include "meter.h"

/* Where it is not there yet. False: there can be no thread. */
bool waiter_start(struct layer_queue *queue);

/* Nothing may be in flight. */
void waiter_stop(struct layer_queue *queue);

#endif /* GOVERNOR_VULKAN_WAITER_H */
