/* SPDX-License-Identifier: MIT */
/*
 * A command of the guest: a private copy, which the guest cannot change any more. Everything in it
 * is the guest's choice: a handler must check each value before it uses it.
 */
#ifndef ENGINE_REQUEST_H
#define ENGINE_REQUEST_H

#include <linux/virtio_gpu.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct request
 * @response_size: the guest's room for the answer
 * @hdr: filled with zeroes if the request is shorter
 */
struct request {
    const uint8_t *data;
    size_t size;
    size_t response_size;
    uint64_t epoch;
    uint32_t queue;
    uint32_t token;
    struct virtio_gpu_ctrl_hdr hdr;
};

#endif /* ENGINE_REQUEST_H */
