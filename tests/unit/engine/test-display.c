// SPDX-License-Identifier: MIT
/* Displays: the monitor, 2D resources and their images, the picture, the cursor. */
#include "fixture.h"
#include "queue.h"

#include "image.h"
#include "monitor.h"
#include "resource.h"

#include <errno.h>
#include <string.h>

#define BGRX VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM
#define BGRA VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM

/* A vGPU with a display. */
static void set_up(struct fixture *f, gconstpointer data)
{
    fixture_set_up(f, data);
    f->driver.info.num_scanouts = 1;
    f->engine.info.num_scanouts = 1;
}

static uint32_t create_image(struct fixture *f, uint32_t id, uint32_t format, uint32_t width,
                             uint32_t height)
{
    struct virtio_gpu_resource_create_2d cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
        .resource_id = id,
        .format = format,
        .width = width,
        .height = height,
    };

    return fixture_ask(f, &cmd, sizeof(cmd));
}

static uint32_t attach_backing(struct fixture *f, uint32_t id, uint32_t bytes)
{
    struct {
        struct virtio_gpu_resource_attach_backing cmd;
        struct virtio_gpu_mem_entry entry;
    } request = {
        .cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
                .resource_id = id,
                .nr_entries = 1},
        .entry = {.addr = 0x10000, .length = (bytes + 4095) & ~4095u},
    };

    return fixture_ask(f, &request, sizeof(request));
}

static uint32_t transfer_rect(struct fixture *f, uint32_t id, struct virtio_gpu_rect rect,
                              uint64_t offset)
{
    struct virtio_gpu_transfer_to_host_2d cmd = {
        .hdr.type = VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
        .r = rect,
        .offset = offset,
        .resource_id = id,
    };

    return fixture_ask(f, &cmd, sizeof(cmd));
}

/* A thread does it otherwise. */
static uint32_t answer_painted(struct fixture *f, uint32_t type)
{
    painter_run(&f->engine.scanout.painter);
    return type;
}

static uint32_t flush_rect(struct fixture *f, uint32_t id, struct virtio_gpu_rect rect)
{
    struct virtio_gpu_resource_flush cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_FLUSH,
        .r = rect,
        .resource_id = id,
    };

    return answer_painted(f, fixture_ask(f, &cmd, sizeof(cmd)));
}

static uint32_t show_image(struct fixture *f, uint32_t id, struct virtio_gpu_rect rect)
{
    struct virtio_gpu_set_scanout cmd = {
        .hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT,
        .r = rect,
        .resource_id = id,
    };

    return answer_painted(f, fixture_ask(f, &cmd, sizeof(cmd)));
}

static uint32_t unref_image(struct fixture *f, uint32_t id)
{
    struct virtio_gpu_resource_unref cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
        .resource_id = id,
    };

    return fixture_ask(f, &cmd, sizeof(cmd));
}

static struct virtio_gpu_rect make_rect(uint32_t x, uint32_t y, uint32_t width, uint32_t height)
{
    return (struct virtio_gpu_rect){.x = x, .y = y, .width = width, .height = height};
}

static uint32_t *guest_pixels(struct fixture *f, uint32_t id)
{
    return resource_find(&f->engine, id)->backing.iov.iov_base;
}

/* Without the byte that means nothing. */
static uint32_t picture_pixel(struct fixture *f, uint32_t x, uint32_t y)
{
    uint32_t pixel;

    painter_run(&f->engine.scanout.painter);
    g_assert_nonnull(f->driver.picture);
    memcpy(&pixel, f->driver.picture + (uint64_t)y * f->driver.scanout.stride + 4 * x, 4);
    return pixel & 0xffffff;
}

/* A resource whose pixels encode their position, shown as a whole. */
static void show_pattern(struct fixture *f, uint32_t id, uint32_t width, uint32_t height)
{
    g_assert_cmphex(create_image(f, id, BGRX, width, height), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(attach_backing(f, id, 4 * width * height), ==, VIRTIO_GPU_RESP_OK_NODATA);
    for (uint32_t i = 0; i < width * height; i++)
        guest_pixels(f, id)[i] = (i / width) << 12 | i % width;
    g_assert_cmphex(transfer_rect(f, id, make_rect(0, 0, width, height), 0), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(show_image(f, id, make_rect(0, 0, width, height)), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(flush_rect(f, id, make_rect(0, 0, width, height)), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
}

static void test_shows(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    show_pattern(f, 1, 320, 200);
    g_assert_cmpuint(f->driver.scanout.width, ==, 320);
    g_assert_cmpuint(f->driver.scanout.height, ==, 200);
    g_assert_cmpuint(f->driver.scanout.stride, ==, 1280);
    g_assert_cmphex(picture_pixel(f, 0, 0), ==, 0);
    g_assert_cmphex(picture_pixel(f, 319, 199), ==, 199 << 12 | 319);

    /* Off, and on again in a part of it. */
    g_assert_cmphex(show_image(f, 0, make_rect(0, 0, 0, 0)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->driver.scanout.width, ==, 0);
    g_assert_cmphex(show_image(f, 1, make_rect(100, 50, 20, 10)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->driver.scanout.stride, ==, 80);
    g_assert_cmphex(picture_pixel(f, 0, 0), ==, 50 << 12 | 100);
    g_assert_cmphex(picture_pixel(f, 19, 9), ==, 59 << 12 | 119);
}

/* Only what was transferred and flushed is visible. */
static void test_damage(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    show_pattern(f, 1, 64, 64);
    for (uint32_t i = 0; i < 64 * 64; i++)
        guest_pixels(f, 1)[i] = 0xabcdef;
    g_assert_cmphex(transfer_rect(f, 1, make_rect(8, 8, 16, 16), 4 * (8 * 64 + 8)), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 8, 8), ==, 8 << 12 | 8);
    g_assert_cmphex(flush_rect(f, 1, make_rect(10, 10, 30, 30)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 8, 8), ==, 8 << 12 | 8);
    g_assert_cmphex(picture_pixel(f, 10, 10), ==, 0xabcdef);
    g_assert_cmphex(picture_pixel(f, 23, 23), ==, 0xabcdef);
    g_assert_cmphex(picture_pixel(f, 24, 24), ==, 24 << 12 | 24);
    g_assert_cmphex(flush_rect(f, 1, make_rect(0, 0, 64, 64)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 8, 8), ==, 0xabcdef);
    g_assert_cmphex(picture_pixel(f, 7, 8), ==, 8 << 12 | 7);
}

/* The guest decides where a rectangle's rows begin in its memory. */
static void test_offset(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    show_pattern(f, 1, 64, 64);
    g_assert_cmphex(transfer_rect(f, 1, make_rect(0, 0, 4, 2), 4 * (20 * 64 + 30)), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(flush_rect(f, 1, make_rect(0, 0, 64, 64)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 3, 1), ==, 21 << 12 | 33);
    g_assert_cmphex(picture_pixel(f, 4, 1), ==, 1 << 12 | 4);
}

static void test_formats(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const struct {
        uint32_t format;
        uint8_t bytes[4];
    } cases[] = {
        {VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM, {3, 2, 1, 9}},
        {VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, {3, 2, 1, 9}},
        {VIRTIO_GPU_FORMAT_A8R8G8B8_UNORM, {9, 1, 2, 3}},
        {VIRTIO_GPU_FORMAT_X8R8G8B8_UNORM, {9, 1, 2, 3}},
        {VIRTIO_GPU_FORMAT_R8G8B8A8_UNORM, {1, 2, 3, 9}},
        {VIRTIO_GPU_FORMAT_R8G8B8X8_UNORM, {1, 2, 3, 9}},
        {VIRTIO_GPU_FORMAT_A8B8G8R8_UNORM, {9, 3, 2, 1}},
        {VIRTIO_GPU_FORMAT_X8B8G8R8_UNORM, {9, 3, 2, 1}},
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint32_t id = i + 1;

        g_assert_cmphex(create_image(f, id, cases[i].format, 2, 2), ==, VIRTIO_GPU_RESP_OK_NODATA);
        g_assert_cmphex(attach_backing(f, id, 16), ==, VIRTIO_GPU_RESP_OK_NODATA);
        memcpy(&guest_pixels(f, id)[3], cases[i].bytes, 4);
        g_assert_cmphex(transfer_rect(f, id, make_rect(0, 0, 2, 2), 0), ==,
                        VIRTIO_GPU_RESP_OK_NODATA);
        g_assert_cmphex(show_image(f, id, make_rect(0, 0, 2, 2)), ==, VIRTIO_GPU_RESP_OK_NODATA);
        g_assert_cmphex(flush_rect(f, id, make_rect(0, 0, 2, 2)), ==, VIRTIO_GPU_RESP_OK_NODATA);
        g_assert_cmphex(picture_pixel(f, 1, 1), ==, 0x010203);
    }
    g_assert_cmphex(create_image(f, 99, 5, 2, 2), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
}

static void test_resize(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    unsigned int told;

    show_pattern(f, 1, 320, 200);
    show_pattern(f, 2, 640, 480);
    g_assert_cmpuint(f->driver.scanout.width, ==, 640);
    g_assert_cmphex(picture_pixel(f, 639, 479), ==, 479 << 12 | 639);

    /* A page flip of the same size is none of the driver's business. */
    told = f->driver.scanouts;
    show_pattern(f, 3, 640, 480);
    g_assert_cmpuint(f->driver.scanouts, ==, told);

    /* A new size shows the new resource at once. */
    g_assert_cmphex(show_image(f, 1, make_rect(0, 0, 320, 200)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 319, 199), ==, 199 << 12 | 319);
    g_assert_cmphex(create_image(f, 4, BGRX, VGPU_PICTURE_MAX_WIDTH, VGPU_PICTURE_MAX_HEIGHT), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(
        show_image(f, 4, make_rect(0, 0, VGPU_PICTURE_MAX_WIDTH, VGPU_PICTURE_MAX_HEIGHT)), ==,
        VIRTIO_GPU_RESP_OK_NODATA);
}

static void test_hostile_rects(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const struct virtio_gpu_rect bad[] = {
        {.x = 0, .y = 0, .width = 65, .height = 64},
        {.x = 0, .y = 0, .width = 64, .height = 65},
        {.x = 1, .y = 0, .width = 64, .height = 64},
        {.x = 0, .y = 1, .width = 64, .height = 64},
        {.x = UINT32_MAX, .y = 0, .width = 1, .height = 1},
        {.x = 0, .y = UINT32_MAX, .width = 1, .height = 1},
        {.x = 2, .y = 2, .width = UINT32_MAX, .height = UINT32_MAX},
    };

    show_pattern(f, 1, 64, 64);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmphex(transfer_rect(f, 1, bad[i], 0), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
        g_assert_cmphex(flush_rect(f, 1, bad[i]), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
        g_assert_cmphex(show_image(f, 1, bad[i]), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    }
    g_assert_cmphex(show_image(f, 1, make_rect(0, 0, 0, 64)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(show_image(f, 1, make_rect(0, 0, 64, 0)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(show_image(f, 7, make_rect(0, 0, 64, 64)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    /* Nothing of a rectangle is nothing. */
    g_assert_cmphex(transfer_rect(f, 1, make_rect(64, 64, 0, 0), UINT64_MAX), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(flush_rect(f, 1, make_rect(64, 64, 0, 0)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 63, 63), ==, 63 << 12 | 63);

    /* Beyond the guest's memory: 64 rows of 256 bytes are four pages to the byte. */
    g_assert_cmphex(transfer_rect(f, 1, make_rect(0, 0, 64, 64), 1), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(transfer_rect(f, 1, make_rect(0, 0, 64, 64), UINT64_MAX), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(transfer_rect(f, 1, make_rect(0, 0, 1, 1), 4 * 4096 - 4), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(transfer_rect(f, 1, make_rect(0, 0, 1, 1), 4 * 4096 - 3), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
}

static void test_limits(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t side = 4096; /* 64 MiB */

    g_assert_cmphex(create_image(f, 1, BGRX, UINT32_MAX, UINT32_MAX), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(create_image(f, 1, BGRX, IMAGE_MAX_SIDE + 1, 1), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    for (uint32_t id = 1; id <= 4; id++)
        g_assert_cmphex(create_image(f, id, BGRX, side, side), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(create_image(f, 5, BGRX, 1, 1), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    g_assert_cmphex(unref_image(f, 2), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(create_image(f, 5, BGRX, 1, 1), ==, VIRTIO_GPU_RESP_OK_NODATA);
    /* Larger than any picture can be made, but not shown as a whole. */
    g_assert_cmphex(show_image(f, 1, make_rect(0, 0, side, 1)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(show_image(f, 1, make_rect(side - 64, side - 64, 64, 64)), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    fixture_reset(f);
    g_assert_cmpuint(f->engine.image_bytes, ==, 0);
}

/* The displayed resource, or the guest's driver, is removed. */
static void test_goes(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    show_pattern(f, 1, 64, 64);
    g_assert_cmphex(unref_image(f, 1), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->driver.scanout.width, ==, 0);
    g_assert_nonnull(f->driver.picture);

    show_pattern(f, 1, 64, 64);
    fixture_reset(f);
    g_assert_null(f->driver.picture);
    g_assert_cmpuint(f->driver.scanout.width, ==, 0);
    show_pattern(f, 1, 64, 64);
    g_assert_cmphex(picture_pixel(f, 63, 63), ==, 63 << 12 | 63);
}

static void test_driver_refuses(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    show_pattern(f, 1, 64, 64);
    g_assert_cmphex(create_image(f, 2, BGRX, 32, 32), ==, VIRTIO_GPU_RESP_OK_NODATA);
    f->driver.scanout_result = EINVAL;
    g_assert_cmphex(show_image(f, 2, make_rect(0, 0, 32, 32)), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    /* The old one is shown as before. */
    g_assert_cmphex(flush_rect(f, 1, make_rect(0, 0, 64, 64)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->driver.scanout.width, ==, 64);
    f->driver.scanout_result = 0;

    fixture_reset(f);
    f->driver.picture_result = ENODEV;
    g_assert_cmphex(create_image(f, 2, BGRX, 32, 32), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(show_image(f, 2, make_rect(0, 0, 32, 32)), ==,
                    VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    g_assert_cmpuint(f->driver.scanout.width, ==, 0);
}

static void send_cursor(struct fixture *f, uint32_t type, uint32_t id, int32_t x, int32_t y)
{
    struct virtio_gpu_update_cursor cmd = {
        .hdr.type = type,
        .pos = {.x = (uint32_t)x, .y = (uint32_t)y},
        .resource_id = id,
    };
    uint32_t token = fake_driver_send(&f->driver, VGPU_QUEUE_CURSOR, &cmd, sizeof(cmd), 0);

    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CURSOR, 4), ==, 0);
    g_assert_cmpuint(fake_driver_answer(&f->driver, token)->len, ==, 0);
}

static void test_cursor(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const uint32_t update = VIRTIO_GPU_CMD_UPDATE_CURSOR, move = VIRTIO_GPU_CMD_MOVE_CURSOR;

    show_pattern(f, 1, 100, 100);
    g_assert_cmphex(create_image(f, 2, BGRA, 64, 64), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(attach_backing(f, 2, 64 * 64 * 4), ==, VIRTIO_GPU_RESP_OK_NODATA);
    guest_pixels(f, 2)[0] = 0xff00ff00; /* all green */
    guest_pixels(f, 2)[1] = 0x00000000; /* nothing */
    guest_pixels(f, 2)[2] = 0x80800000; /* half of red, premultiplied */
    guest_pixels(f, 2)[64 * 64 - 1] = 0xffffffff;
    g_assert_cmphex(transfer_rect(f, 2, make_rect(0, 0, 64, 64), 0), ==, VIRTIO_GPU_RESP_OK_NODATA);

    send_cursor(f, update, 2, 10, 20);
    g_assert_cmphex(picture_pixel(f, 10, 20), ==, 0x00ff00);
    g_assert_cmphex(picture_pixel(f, 11, 20), ==, 20 << 12 | 11);
    g_assert_cmphex(picture_pixel(f, 12, 20) >> 16, ==, 0x80);
    g_assert_cmphex(picture_pixel(f, 73, 83), ==, 0xffffff);

    /* It stays above what is flushed, and leaves no trail. */
    g_assert_cmphex(flush_rect(f, 1, make_rect(0, 0, 100, 100)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 10, 20), ==, 0x00ff00);
    send_cursor(f, move, 0, 30, 40);
    g_assert_cmphex(picture_pixel(f, 10, 20), ==, 20 << 12 | 10);
    g_assert_cmphex(picture_pixel(f, 30, 40), ==, 0x00ff00);

    /* Partly and wholly outside, on all sides. */
    send_cursor(f, move, 0, -63, -63);
    g_assert_cmphex(picture_pixel(f, 0, 0), ==, 0xffffff);
    g_assert_cmphex(picture_pixel(f, 30, 40), ==, 40 << 12 | 30);
    send_cursor(f, move, 0, 99, 99);
    g_assert_cmphex(picture_pixel(f, 99, 99), ==, 0x00ff00);
    send_cursor(f, move, 0, INT32_MAX, INT32_MAX);
    send_cursor(f, move, 0, INT32_MIN, INT32_MIN);
    g_assert_cmphex(picture_pixel(f, 99, 99), ==, 99 << 12 | 99);

    /* Its image is its own: the resource may go. */
    send_cursor(f, move, 0, 5, 5);
    g_assert_cmphex(unref_image(f, 2), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(flush_rect(f, 1, make_rect(0, 0, 100, 100)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 5, 5), ==, 0x00ff00);
    send_cursor(f, update, 0, 5, 5);
    g_assert_cmphex(picture_pixel(f, 5, 5), ==, 5 << 12 | 5);
    /* Too large to be one. */
    send_cursor(f, update, 1, 5, 5);
    g_assert_cmphex(picture_pixel(f, 5, 5), ==, 5 << 12 | 5);
}

static void test_cursor_early(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr shorter = {.type = VIRTIO_GPU_CMD_UPDATE_CURSOR};
    uint32_t token;

    send_cursor(f, VIRTIO_GPU_CMD_UPDATE_CURSOR, 1, 0, 0);
    send_cursor(f, VIRTIO_GPU_CMD_MOVE_CURSOR, 1, 0, 0);
    token = fake_driver_send(&f->driver, VGPU_QUEUE_CURSOR, &shorter, sizeof(shorter), 0);
    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CURSOR, 4), ==, 0);
    g_assert_nonnull(fake_driver_answer(&f->driver, token));
}

static uint32_t show_blob(struct fixture *f, uint32_t id, uint32_t width, uint32_t height,
                          uint32_t stride, uint32_t offset)
{
    struct virtio_gpu_set_scanout_blob cmd = {
        .hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
        .r = {.width = width, .height = height},
        .resource_id = id,
        .width = width,
        .height = height,
        .format = BGRX,
        .strides = {stride},
        .offsets = {offset},
    };

    return answer_painted(f, fixture_ask(f, &cmd, sizeof(cmd)));
}

static void test_host_blob(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_resource_map_blob map = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
                                               .resource_id = 1};
    uint32_t *pixels;

    fixture_create_context(f, 1);
    fixture_create_blob(f, 1, 1, 64 * 1024);
    g_assert_cmphex(show_blob(f, 1, 100, 100, 512, 64), ==, VIRTIO_GPU_RESP_OK_NODATA);
    pixels = resource_find(&f->engine, 1)->map_addr;
    pixels[16 + 99 * 128 + 99] = 0x123456;
    g_assert_cmphex(flush_rect(f, 1, make_rect(0, 0, 100, 100)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 99, 99), ==, 0x123456);

    /* The window and the picture share one mapping, and each may end first. */
    g_assert_cmphex(fixture_ask(f, &map, sizeof(map)), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    g_assert_cmphex(show_image(f, 0, make_rect(0, 0, 0, 0)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(show_blob(f, 1, 100, 100, 512, 0), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(resource_find(&f->engine, 1)->map_users, ==, 2);
    map.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB;
    g_assert_cmphex(fixture_ask(f, &map, sizeof(map)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(flush_rect(f, 1, make_rect(0, 0, 100, 100)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(unref_image(f, 1), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->driver.scanout.width, ==, 0);
}

/* The host's memory is read in parts, wherever a row begins. */
static void test_wide_blob(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const uint32_t width = 2100, stride = 8404;
    uint8_t *row;

    fixture_create_context(f, 1);
    fixture_create_blob(f, 1, 1, 128 * 1024);
    g_assert_cmphex(show_blob(f, 1, width, 8, stride, 12), ==, VIRTIO_GPU_RESP_OK_NODATA);
    for (uint32_t y = 0; y < 8; y++) {
        row = (uint8_t *)resource_find(&f->engine, 1)->map_addr + 12 + y * stride;
        for (uint32_t x = 0; x < width; x++)
            ((uint32_t *)(void *)row)[x] = y << 16 | x;
    }
    g_assert_cmphex(flush_rect(f, 1, make_rect(1, 0, width - 1, 8)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(picture_pixel(f, 0, 3), ==, 0);
    for (uint32_t y = 0; y < 8; y++) {
        for (uint32_t x = 1; x < width; x++)
            g_assert_cmphex(picture_pixel(f, x, y), ==, y << 16 | x);
    }
}

static void test_hostile_blob(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const uint32_t refused = VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

    fixture_create_context(f, 1);
    fixture_create_blob(f, 1, 1, 4096);
    g_assert_cmphex(show_blob(f, 1, 0, 1, 0, 0), ==, refused);
    g_assert_cmphex(show_blob(f, 1, 1, 0, 4, 0), ==, refused);
    g_assert_cmphex(show_blob(f, 1, 32, 33, 128, 0), ==, refused);
    g_assert_cmphex(show_blob(f, 1, 32, 32, 128, 1), ==, refused);
    g_assert_cmphex(show_blob(f, 1, 32, 32, 127, 0), ==, refused);
    g_assert_cmphex(show_blob(f, 1, 32, 2, UINT32_MAX, 0), ==, refused);
    g_assert_cmphex(show_blob(f, 1, 32, 1, 128, UINT32_MAX), ==, refused);
    g_assert_cmphex(show_blob(f, 1, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0), ==, refused);
    g_assert_cmphex(show_blob(f, 9, 32, 32, 128, 0), ==, VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    g_assert_cmpuint(resource_find(&f->engine, 1)->map_users, ==, 0);
    g_assert_cmphex(show_blob(f, 1, 32, 32, 128, 0), ==, VIRTIO_GPU_RESP_OK_NODATA);

    /* virglrenderer may map less than the guest requested. */
    fixture_create_blob(f, 1, 2, 8192);
    fake_virgl.map_size = 4096;
    g_assert_cmphex(show_blob(f, 2, 32, 33, 128, 0), ==, refused);
    fake_virgl.map_result = -EINVAL;
    g_assert_cmphex(show_blob(f, 2, 32, 32, 128, 0), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    g_assert_cmphex(create_image(f, 3, BGRX, 8, 8), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(show_blob(f, 3, 8, 8, 32, 0), ==, VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    g_assert_cmphex(show_image(f, 1, make_rect(0, 0, 8, 8)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
}

static struct virtio_gpu_resp_display_info ask_info(struct fixture *f)
{
    struct virtio_gpu_ctrl_hdr cmd = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    const GByteArray *answer = fake_driver_answer(&f->driver, fixture_send(f, &cmd, sizeof(cmd)));
    struct virtio_gpu_resp_display_info info;

    g_assert_cmpuint(answer->len, ==, sizeof(info));
    memcpy(&info, answer->data, sizeof(info));
    g_assert_cmphex(info.hdr.type, ==, VIRTIO_GPU_RESP_OK_DISPLAY_INFO);
    return info;
}

static struct virtio_gpu_resp_edid ask_edid(struct fixture *f)
{
    struct virtio_gpu_cmd_get_edid cmd = {.hdr.type = VIRTIO_GPU_CMD_GET_EDID};
    const GByteArray *answer = fake_driver_answer(&f->driver, fixture_send(f, &cmd, sizeof(cmd)));
    struct virtio_gpu_resp_edid edid;

    g_assert_cmpuint(answer->len, ==, sizeof(edid));
    memcpy(&edid, answer->data, sizeof(edid));
    g_assert_cmphex(edid.hdr.type, ==, VIRTIO_GPU_RESP_OK_EDID);
    return edid;
}

static void test_monitor(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_resp_display_info info = ask_info(f);
    struct virtio_gpu_resp_edid edid = ask_edid(f);
    struct virtio_gpu_cmd_get_edid other = {.hdr.type = VIRTIO_GPU_CMD_GET_EDID, .scanout = 1};
    uint8_t sum = 0;

    /* The engine's own EDID, while the VMM has set none. */
    g_assert_cmpuint(info.pmodes[0].enabled, ==, 1);
    g_assert_cmpuint(info.pmodes[0].r.width, ==, MONITOR_WIDTH);
    g_assert_cmpuint(info.pmodes[0].r.height, ==, MONITOR_HEIGHT);
    g_assert_cmpuint(info.pmodes[1].enabled, ==, 0);
    g_assert_cmpuint(edid.size, ==, MONITOR_EDID_SIZE);
    for (uint32_t i = 0; i < MONITOR_EDID_SIZE; i++)
        sum = (uint8_t)(sum + edid.edid[i]);
    g_assert_cmpuint(sum, ==, 0);

    /* The VMM's. */
    monitor_edid(f->driver.display.edid, 1920, 1080);
    f->driver.display.edid_size = 256;
    f->driver.display.edid[200] = 0x77;
    info = ask_info(f);
    edid = ask_edid(f);
    g_assert_cmpuint(info.pmodes[0].r.width, ==, 1920);
    g_assert_cmpuint(info.pmodes[0].r.height, ==, 1080);
    g_assert_cmpuint(edid.size, ==, 256);
    g_assert_cmphex(edid.edid[200], ==, 0x77);

    /* Off. */
    f->driver.display.state = 0;
    g_assert_cmpuint(ask_info(f).pmodes[0].enabled, ==, 0);
    g_assert_cmphex(fixture_ask(f, &other, sizeof(other)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID);
}

/* An EDID of a VMM may be anything. */
static void test_hostile_monitor(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    f->driver.display.edid_size = 3;
    g_assert_cmpuint(ask_info(f).pmodes[0].r.width, ==, MONITOR_WIDTH);
    g_assert_cmpuint(ask_edid(f).size, ==, 3);
    memset(f->driver.display.edid, 0xff, sizeof(f->driver.display.edid));
    f->driver.display.edid_size = sizeof(f->driver.display.edid);
    g_assert_cmpuint(ask_info(f).pmodes[0].r.width, ==, VGPU_PICTURE_MAX_WIDTH);
    g_assert_cmpuint(ask_info(f).pmodes[0].r.height, ==, VGPU_PICTURE_MAX_HEIGHT);
    f->driver.display.edid_size++;
    g_assert_cmpuint(ask_info(f).pmodes[0].enabled, ==, 0);
}

#define display_test(path, function)                                                               \
    g_test_add("/display/" path, struct fixture, NULL, set_up, function, fixture_tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    display_test("shows", test_shows);
    display_test("damage", test_damage);
    display_test("offset", test_offset);
    display_test("formats", test_formats);
    display_test("resize", test_resize);
    display_test("hostile-rects", test_hostile_rects);
    display_test("limits", test_limits);
    display_test("goes", test_goes);
    display_test("driver-refuses", test_driver_refuses);
    display_test("cursor", test_cursor);
    display_test("cursor-early", test_cursor_early);
    display_test("host-blob", test_host_blob);
    display_test("wide-blob", test_wide_blob);
    display_test("hostile-blob", test_hostile_blob);
    display_test("monitor", test_monitor);
    display_test("hostile-monitor", test_hostile_monitor);
    return g_test_run();
}
