// SPDX-License-Identifier: MIT
#include "pixels.h"

#include <glib.h>
#include <linux/virtio_gpu.h>
#include <string.h>

/* The byte order of the picture. */
enum { BLUE, GREEN, RED, UNUSED };

static const struct {
    uint32_t virtio_format;
    struct pixel_format format;
} formats[] = {
    {VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM,
     {.blue = 0, .green = 1, .red = 2, .alpha = 3, .has_alpha = true}},
    {VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
     {.blue = 0, .green = 1, .red = 2, .alpha = 3, .has_alpha = false}},
    {VIRTIO_GPU_FORMAT_A8R8G8B8_UNORM,
     {.alpha = 0, .red = 1, .green = 2, .blue = 3, .has_alpha = true}},
    {VIRTIO_GPU_FORMAT_X8R8G8B8_UNORM,
     {.alpha = 0, .red = 1, .green = 2, .blue = 3, .has_alpha = false}},
    {VIRTIO_GPU_FORMAT_R8G8B8A8_UNORM,
     {.red = 0, .green = 1, .blue = 2, .alpha = 3, .has_alpha = true}},
    {VIRTIO_GPU_FORMAT_R8G8B8X8_UNORM,
     {.red = 0, .green = 1, .blue = 2, .alpha = 3, .has_alpha = false}},
    {VIRTIO_GPU_FORMAT_A8B8G8R8_UNORM,
     {.alpha = 0, .blue = 1, .green = 2, .red = 3, .has_alpha = true}},
    {VIRTIO_GPU_FORMAT_X8B8G8R8_UNORM,
     {.alpha = 0, .blue = 1, .green = 2, .red = 3, .has_alpha = false}},
};

const struct pixel_format *pixel_format_find(uint32_t virtio_format)
{
    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++)
        if (formats[i].virtio_format == virtio_format)
            return &formats[i].format;
    return NULL;
}

uint32_t pixel_format_name(const struct pixel_format *format)
{
    size_t i = 0;

    while (&formats[i].format != format)
        i++;
    return formats[i].virtio_format;
}

void pixels_copy(uint8_t *picture, const uint8_t *source, uint32_t count,
                 const struct pixel_format *format)
{
    if (format->blue == BLUE && format->red == RED) {
        memcpy(picture, source, (size_t)count * PIXEL_BYTES);
        return;
    }
    for (; count > 0; count--, picture += PIXEL_BYTES, source += PIXEL_BYTES) {
        picture[BLUE] = source[format->blue];
        picture[GREEN] = source[format->green];
        picture[RED] = source[format->red];
    }
}

static uint8_t blend_over(uint8_t source, uint8_t below, uint8_t alpha)
{
    return (uint8_t)MIN(source + below * (255 - alpha) / 255, 255);
}

void pixels_blend(uint8_t *picture, const uint8_t *source, uint32_t count,
                  const struct pixel_format *format)
{
    for (; count > 0; count--, picture += PIXEL_BYTES, source += PIXEL_BYTES) {
        uint8_t alpha = format->has_alpha ? source[format->alpha] : 255;

        picture[BLUE] = blend_over(source[format->blue], picture[BLUE], alpha);
        picture[GREEN] = blend_over(source[format->green], picture[GREEN], alpha);
        picture[RED] = blend_over(source[format->red], picture[RED], alpha);
    }
}
