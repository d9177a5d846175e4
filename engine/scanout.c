// SPDX-License-Identifier: MIT
#include "scanout.h"

#include "engine.h"
#include "pixels.h"
#include "resource.h"
#include "stream.h"

#include <string.h>

/* DRM_FORMAT_XRGB8888 */
#define FORMAT_XRGB8888 0x34325258u

/* Pixels that are read from a card at a time. */
#define PART_PIXELS 1024u

/* Pixels that are painted in one step: a command may wait for them. */
#define STEP_PIXELS (16 * 1024)

/* The memory of a resource's pixels. */
static const uint8_t *resource_memory(const struct resource *resource, uint64_t *size)
{
    if (resource->image) {
        *size = resource->image_size;
        return resource->image;
    }
    if (resource->backing.iov.iov_base) {
        *size = MIN(resource->backing.iov.iov_len, resource->size);
        return resource->backing.iov.iov_base;
    }
    *size = MIN(resource->map_size, resource->size);
    return resource->map_addr;
}

static bool surface_fits(const struct surface *surface, uint64_t size)
{
    uint64_t row = (uint64_t)surface->width * PIXEL_BYTES;
    uint64_t span = (uint64_t)surface->stride * (surface->height - 1) + row;

    return surface->stride >= row && span <= size && surface->offset <= size - span;
}

static bool rect_fits(const struct surface *surface, const struct virtio_gpu_rect *rect)
{
    return rect->width > 0 && rect->width <= VGPU_PICTURE_MAX_WIDTH && rect->height > 0 &&
           rect->height <= VGPU_PICTURE_MAX_HEIGHT && rect->x <= surface->width &&
           rect->width <= surface->width - rect->x && rect->y <= surface->height &&
           rect->height <= surface->height - rect->y;
}

static struct area clip_area(const struct scanout *scanout, struct area area)
{
    return area_intersect(area, (struct area){0, 0, scanout->rect.width, scanout->rect.height});
}

static uint8_t *picture_at(const struct scanout *scanout, int64_t x, int64_t y)
{
    return scanout->picture + (y * scanout->rect.width + x) * PIXEL_BYTES;
}

/* The host's memory may be a card's. */
static void copy_mapped(uint8_t *picture, const uint8_t *source, uint32_t count,
                        const struct pixel_format *format)
{
    uint8_t part[PART_PIXELS * PIXEL_BYTES];
    uint32_t pixels;

    for (; count > 0; count -= pixels) {
        pixels = MIN(count, PART_PIXELS);
        stream_copy(part, source, pixels * PIXEL_BYTES);
        pixels_copy(picture, part, pixels, format);
        picture += pixels * PIXEL_BYTES;
        source += pixels * PIXEL_BYTES;
    }
}

/* @area is clipped. The memory was checked to hold the surface when it was shown, and stays. */
static void paint_source(struct scanout *scanout, const struct area *area)
{
    const struct surface *surface = &scanout->surface;
    const uint8_t *source = scanout->pixels + surface->offset;

    source += (scanout->rect.y + (uint64_t)area->top) * surface->stride +
              (scanout->rect.x + (uint64_t)area->left) * PIXEL_BYTES;
    for (int64_t y = area->top; y < area->bottom; y++, source += surface->stride)
        (scanout->mapped ? copy_mapped : pixels_copy)(picture_at(scanout, area->left, y), source,
                                                      (uint32_t)(area->right - area->left),
                                                      surface->format);
}

static struct area cursor_area(const struct cursor *cursor)
{
    return (struct area){cursor->x, cursor->y, (int64_t)cursor->x + cursor->width,
                         (int64_t)cursor->y + cursor->height};
}

/* The part of the cursor in @area, which is clipped. */
static void paint_cursor(struct scanout *scanout, const struct area *area)
{
    const struct cursor *cursor = &scanout->cursor;
    struct area part;

    if (!cursor->format)
        return;
    part = area_intersect(cursor_area(cursor), *area);
    if (area_is_empty(part))
        return;
    for (int64_t y = part.top; y < part.bottom; y++) {
        const uint8_t *row =
            cursor->image +
            ((y - cursor->y) * cursor->width + (part.left - cursor->x)) * PIXEL_BYTES;

        pixels_blend(picture_at(scanout, part.left, y), row, (uint32_t)(part.right - part.left),
                     cursor->format);
    }
}

/* A step of the painter. What is shown may have become smaller since the damage. */
static bool paint_some(void *data, bool first)
{
    struct scanout *scanout = data;
    struct area area;

    if (first) {
        scanout->painting = scanout->damage;
        scanout->damage.count = 0;
    }
    if (!scanout->source || !damage_take(&scanout->painting, STEP_PIXELS, &area))
        return false;
    area = clip_area(scanout, area);
    if (!area_is_empty(area)) {
        paint_source(scanout, &area);
        paint_cursor(scanout, &area);
    }
    return scanout->painting.count > 0;
}

/* The painter's lock is held. */
static void want_area(struct scanout *scanout, struct area area)
{
    if (!scanout->source)
        return;
    damage_add(&scanout->damage, clip_area(scanout, area));
    painter_wake(&scanout->painter);
}

void scanout_init(struct scanout *scanout)
{
    painter_init(&scanout->painter, paint_some, scanout);
}

static bool map_picture(struct engine *engine)
{
    struct vgpu_transport *transport = engine->transport;
    void *addr;

    if (engine->scanout.picture)
        return true;
    if (transport->ops->map(transport, VGPU_PICTURE_OFFSET, VGPU_PICTURE_SIZE, &addr) < 0)
        return false;
    engine->scanout.picture = addr;
    return true;
}

static uint32_t tell_driver(struct engine *engine, uint32_t width, uint32_t height)
{
    struct vgpu_scanout scanout = {
        .epoch = engine->epoch,
        .width = width,
        .height = height,
        .stride = width * PIXEL_BYTES,
        .drm_format = width ? FORMAT_XRGB8888 : 0,
    };

    return engine->transport->ops->set_scanout(engine->transport, &scanout) < 0
               ? VIRTIO_GPU_RESP_ERR_UNSPEC
               : VIRTIO_GPU_RESP_OK_NODATA;
}

static void let_go(struct scanout *scanout)
{
    if (scanout->mapped)
        resource_unmap(scanout->source);
    scanout->source = NULL;
    scanout->pixels = NULL;
    scanout->mapped = false;
}

/* Finds the surface's memory, with a mapping of its own if it is the host's. */
static uint32_t take_source(struct resource *resource, const struct surface *surface,
                            const uint8_t **pixels, bool *mapped)
{
    uint64_t size;

    if (resource->lost)
        return VIRTIO_GPU_RESP_ERR_UNSPEC;
    *mapped = resource->kind == RESOURCE_BLOB && !resource->backing.iov.iov_base;
    if (*mapped && !resource_map(resource))
        return VIRTIO_GPU_RESP_ERR_UNSPEC;
    *pixels = resource_memory(resource, &size);
    if (*pixels && surface_fits(surface, size))
        return VIRTIO_GPU_RESP_OK_NODATA;
    if (*mapped)
        resource_unmap(resource);
    return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
}

uint32_t scanout_show(struct engine *engine, struct resource *resource,
                      const struct surface *surface, const struct virtio_gpu_rect *rect)
{
    struct scanout *scanout = &engine->scanout;
    bool resized = !scanout->source || scanout->rect.width != rect->width ||
                   scanout->rect.height != rect->height;
    const uint8_t *pixels;
    uint32_t type;
    bool mapped;

    if (!rect_fits(surface, rect))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    type = take_source(resource, surface, &pixels, &mapped);
    if (type != VIRTIO_GPU_RESP_OK_NODATA)
        return type;

    /* The driver is told meanwhile, so that nothing is painted in a size that it does not know. */
    painter_enter(&scanout->painter);
    if (!map_picture(engine))
        type = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
    else if (resized)
        type = tell_driver(engine, rect->width, rect->height);
    if (type == VIRTIO_GPU_RESP_OK_NODATA) {
        let_go(scanout);
        scanout->source = resource;
        scanout->pixels = pixels;
        scanout->mapped = mapped;
        scanout->surface = *surface;
        scanout->rect = *rect;
        if (resized)
            want_area(scanout, (struct area){0, 0, rect->width, rect->height});
    } else if (mapped) {
        resource_unmap(resource);
    }
    painter_leave(&scanout->painter);
    return type;
}

void scanout_off(struct engine *engine)
{
    struct scanout *scanout = &engine->scanout;

    if (!scanout->source)
        return;
    painter_enter(&scanout->painter);
    let_go(scanout);
    painter_leave(&scanout->painter);
    /* ESTALE: it is off already. */
    tell_driver(engine, 0, 0);
}

void scanout_flush(struct engine *engine, const struct resource *resource,
                   const struct virtio_gpu_rect *damage)
{
    struct scanout *scanout = &engine->scanout;
    int64_t left = (int64_t)damage->x - scanout->rect.x;
    int64_t top = (int64_t)damage->y - scanout->rect.y;

    if (scanout->source != resource)
        return;
    painter_enter(&scanout->painter);
    want_area(scanout, (struct area){left, top, left + damage->width, top + damage->height});
    painter_leave(&scanout->painter);
}

void scanout_reset(struct engine *engine)
{
    struct scanout *scanout = &engine->scanout;
    struct vgpu_transport *transport = engine->transport;

    painter_enter(&scanout->painter);
    let_go(scanout);
    if (scanout->picture)
        transport->ops->unmap(transport, scanout->picture, VGPU_PICTURE_SIZE);
    scanout->picture = NULL;
    scanout->rect = (struct virtio_gpu_rect){0};
    scanout->cursor = (struct cursor){0};
    scanout->damage.count = scanout->painting.count = 0;
    painter_leave(&scanout->painter);
}

void scanout_set_cursor(struct engine *engine, const struct resource *resource)
{
    struct scanout *scanout = &engine->scanout;
    struct cursor *cursor = &scanout->cursor;

    painter_enter(&scanout->painter);
    want_area(scanout, cursor_area(cursor));
    cursor->format = NULL;
    if (resource && resource->image && resource->width <= CURSOR_SIDE &&
        resource->height <= CURSOR_SIDE) {
        memcpy(cursor->image, resource->image, resource->image_size);
        cursor->format = resource->format;
        cursor->width = resource->width;
        cursor->height = resource->height;
    }
    want_area(scanout, cursor_area(cursor));
    painter_leave(&scanout->painter);
}

void scanout_show_cursor(struct engine *engine, const struct cursor *cursor)
{
    struct scanout *scanout = &engine->scanout;

    painter_enter(&scanout->painter);
    scanout->cursor = *cursor;
    want_area(scanout, cursor_area(cursor));
    painter_leave(&scanout->painter);
}

void scanout_move_cursor(struct engine *engine, int32_t x, int32_t y)
{
    struct scanout *scanout = &engine->scanout;
    struct cursor *cursor = &scanout->cursor;

    painter_enter(&scanout->painter);
    if (cursor->format)
        want_area(scanout, cursor_area(cursor));
    cursor->x = x;
    cursor->y = y;
    if (cursor->format)
        want_area(scanout, cursor_area(cursor));
    painter_leave(&scanout->painter);
}
