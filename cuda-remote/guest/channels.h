/* SPDX-License-Identifier: MIT */
#ifndef CUDA_REMOTE_GUEST_CHANNELS_H
#define CUDA_REMOTE_GUEST_CHANNELS_H

#include "channel.h"

/* Channels are shared memory, for which the worker starts a thread; NULL: there is no more. */
struct channel_shared *shared_new_channel(void);
void shared_end_channel(struct channel_shared *at);

#endif
