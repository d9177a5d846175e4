/* SPDX-License-Identifier: MIT */
/* One request taken, or one answer given, by an engine, as a test says. */
#ifndef DRIVER_TESTS_POP_AND_PUSH_H
#define DRIVER_TESTS_POP_AND_PUSH_H

#include "testbed.h"

#define CONTROL VGPU_QUEUE_CONTROL

typedef struct {
    struct vgpu_queue_exchange x;
    struct vgpu_queue_request request;
    uint8_t data[64];
    uint64_t size;
    uint64_t epoch; /* 0: the present one */
    uint32_t queues;
    uint32_t flags;
    uint32_t poll_us;
    uint32_t wait_ms;
    int32_t wait_fd;
    int64_t took_us;
} PopCall;

/* For engine_peer_call(), with a PopCall: a request of the control queue. */
int engine_call_pop(EngineCtx *ctx, void *arg);

/* An answer of zeros, to whatever request. */
int engine_push_of(Testbed *tb, uint64_t epoch, uint32_t queue, uint32_t token, uint32_t size);

#endif
