/* SPDX-License-Identifier: MIT */
/*
 * Pixels of four bytes, as virtio-gpu's formats have them, and as the picture has them: XRGB8888,
 * which is B8G8R8X8 in memory. Nothing here knows of resources; callers have checked that what they
 * name is there.
 */
#ifndef ENGINE_PIXELS_H
#define ENGINE_PIXELS_H

#include <stdbool.h>
#include <stdint.h>

#define PIXEL_BYTES 4u

/**
 * struct pixel_format - which byte of a pixel is what
 */
struct pixel_format {
    uint8_t red, green, blue, alpha;
    bool has_alpha;
};

/* Of VIRTIO_GPU_FORMAT_*; NULL for what is none. */
const struct pixel_format *pixel_format_find(uint32_t virtio_format);

/* Copies @count pixels to the picture; its unused bytes get any value. */
void pixels_copy(uint8_t *picture, const uint8_t *source, uint32_t count,
                 const struct pixel_format *format);

/* Lays @count pixels, premultiplied by their alpha as DRM's cursors are, over those of the picture.
 */
void pixels_blend(uint8_t *picture, const uint8_t *source, uint32_t count,
                  const struct pixel_format *format);

#endif /* ENGINE_PIXELS_H */
