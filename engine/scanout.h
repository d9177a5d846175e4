/* SPDX-License-Identifier: MIT */
/*
 * The picture: which part of which resource is shown, and copying it, with the guest's cursor on
 * top, into the memory that the VMM reads. The cursor is drawn here because VMMs query a cursor's
 * plane only if they show dma-bufs.
 *
 * A thread copies (painter.h), so a command is answered before its pixels are seen. What the main
 * thread changes here it changes under the painter's lock; it reads without, and nobody else
 * writes.
 *
 * The picture's memory is mapped when the guest first shows something, and unmapped at its reset:
 * the next VMM that opens the vGPU gets other memory.
 */
#ifndef ENGINE_SCANOUT_H
#define ENGINE_SCANOUT_H

#include "damage.h"
#include "painter.h"

#include <linux/virtio_gpu.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct pixel_format;
struct resource;

#define CURSOR_SIDE 64u

/**
 * struct surface - pixels in a resource's memory
 * @offset: of the first one, in bytes
 */
struct surface {
    uint32_t width, height, stride;
    uint64_t offset;
    const struct pixel_format *format;
};

/**
 * struct cursor
 * @image: the guest's image at the time of its command; @format NULL: none is shown
 * @x, @y: of its upper left corner in the picture; may be outside
 */
struct cursor {
    uint8_t image[CURSOR_SIDE * CURSOR_SIDE * 4];
    const struct pixel_format *format;
    uint32_t width, height;
    int32_t x, y;
};

/**
 * struct scanout
 * @picture: VGPU_PICTURE_SIZE bytes, or NULL
 * @source: what is shown, or NULL; resource->map_users counts it if @mapped
 * @pixels: its memory
 * @rect: the part of @surface that is shown
 * @damage: what is to be painted next; @painting: what is left of the present round
 */
struct scanout {
    struct painter painter;
    uint8_t *picture;
    struct resource *source;
    const uint8_t *pixels;
    bool mapped;
    struct surface surface;
    struct virtio_gpu_rect rect;
    struct cursor cursor;
    struct damage damage;
    struct damage painting;
};

/* The painter is started, stopped and cleared by itself. */
void scanout_init(struct scanout *scanout);

/*
 * Shows @rect of @surface of @resource from now on. Its pixels are copied after the next flush, or
 * now if the size changes. VIRTIO_GPU_RESP_OK_NODATA, or an error that changes nothing.
 */
uint32_t scanout_show(struct engine *engine, struct resource *resource,
                      const struct surface *surface, const struct virtio_gpu_rect *rect);

/* Shows nothing: the VMM returns to the firmware's picture, if it has one. */
void scanout_off(struct engine *engine);

/* @damage, in @resource's coordinates, has changed. Does nothing if that part is not shown. */
void scanout_flush(struct engine *engine, const struct resource *resource,
                   const struct virtio_gpu_rect *damage);

/* The guest's reset; the driver shows nothing by then. */
void scanout_reset(struct engine *engine);

/* Takes the cursor's image of a 2D resource; NULL, or one that is too large, hides it. */
void scanout_set_cursor(struct engine *engine, const struct resource *resource);
void scanout_show_cursor(struct engine *engine, const struct cursor *cursor);
void scanout_move_cursor(struct engine *engine, int32_t x, int32_t y);

#endif /* ENGINE_SCANOUT_H */
