/* SPDX-License-Identifier: MIT */
#ifndef CUDA_REMOTE_GUEST_LANES_H
#define CUDA_REMOTE_GUEST_LANES_H

#include "lane.h"

/* Lanes are shared memory, for which the worker starts a thread; NULL: there is no more. */
struct lane_shared *shared_new_lane(void);
void shared_end_lane(struct lane_shared *at);

#endif
