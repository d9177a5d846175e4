/* SPDX-License-Identifier: MIT */
/*
 * Pixels of four bytes, in virtio-gpu's formats, and in the picture's: XRGB8888, which is B8G8R8X8
 * in memory. Nothing here knows of resources; callers check the ranges.
 */
#ifndef ENGINE_PIXELS_H
#define ENGINE_PIXELS_H

#include <stdbool.h>
#include <stdint.h>

#define PIXEL_BYTES 4u

/* struct pixel_format - the meaning of each byte of a pixel */
struct pixel_format {
    uint8_t red, green, blue, alpha;
    bool has_alpha;
};

/* Of VIRTIO_GPU_FORMAT_*; NULL if it is not a format. */
const struct pixel_format *pixel_format_find(uint32_t virtio_format);

/* The reverse. */
uint32_t pixel_format_name(const struct pixel_format *format);

/* Copies @count pixels to the picture; its unused bytes get any value. */
void pixels_copy(uint8_t *picture, const uint8_t *source, uint32_t count,
                 const struct pixel_format *format);

/*
 * Blends @count pixels, premultiplied by their alpha like DRM's cursors, over those of the picture.
 */
void pixels_blend(uint8_t *picture, const uint8_t *source, uint32_t count,
                  const struct pixel_format *format);

#endif /* ENGINE_PIXELS_H */
