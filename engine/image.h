/* SPDX-License-Identifier: MIT */
/*
 * 2D resources. If the vGPU has a display, each has an image: the host's copy, which
 * TRANSFER_TO_HOST_2D fills from guest memory and which the picture is made from. Without a display
 * nobody could see it, and only the records exist.
 */
#ifndef ENGINE_IMAGE_H
#define ENGINE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct request;
struct resource;
struct virtio_gpu_rect;

/* All images of a guest together, as in QEMU. */
#define IMAGE_MAX_BYTES (256ull << 20)
#define IMAGE_MAX_SIDE  16384u

bool image_has_rect(const struct resource *resource, const struct virtio_gpu_rect *rect);

/* Handlers, see control.h. */
uint32_t image_cmd_create(struct engine *engine, const struct request *request);
uint32_t image_cmd_transfer(struct engine *engine, const struct request *request);

#endif /* ENGINE_IMAGE_H */
