// SPDX-License-Identifier: MIT
/*
 * The thread that copies the picture: what is damaged, how often it paints, that it gives way, and
 * that it touches nothing that is gone. Also built with the thread sanitizer.
 */
#include "fixture.h"

#include "context.h"
#include "queue.h"
#include "resource.h"

#include <string.h>

#define BGRX   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM
#define WIDTH  600u
#define HEIGHT 400u
#define IMAGES 3u
#define BLOB   9u

static struct area make_area(int64_t left, int64_t top, int64_t right, int64_t bottom)
{
    return (struct area){left, top, right, bottom};
}

static void assert_area(struct area got, int64_t left, int64_t top, int64_t right, int64_t bottom)
{
    g_assert_cmpint(got.left, ==, left);
    g_assert_cmpint(got.top, ==, top);
    g_assert_cmpint(got.right, ==, right);
    g_assert_cmpint(got.bottom, ==, bottom);
}

static void test_damage(void)
{
    struct damage damage = {0};
    struct area got;

    damage_add(&damage, make_area(5, 5, 5, 9));
    damage_add(&damage, make_area(5, 9, 6, 5));
    g_assert_false(damage_take(&damage, 100, &got));

    /* Apart, until one overlaps both. */
    damage_add(&damage, make_area(0, 0, 10, 10));
    damage_add(&damage, make_area(20, 0, 30, 10));
    g_assert_cmpuint(damage.count, ==, 2);
    damage_add(&damage, make_area(9, 5, 21, 12));
    g_assert_cmpuint(damage.count, ==, 1);

    g_assert_true(damage_take(&damage, 150, &got));
    assert_area(got, 0, 0, 30, 5);
    g_assert_true(damage_take(&damage, 1, &got));
    assert_area(got, 0, 5, 30, 6);
    g_assert_true(damage_take(&damage, 1000, &got));
    assert_area(got, 0, 6, 30, 12);
    g_assert_false(damage_take(&damage, 100, &got));

    for (int64_t i = 0; i < DAMAGE_MAX_AREAS + 1; i++)
        damage_add(&damage, make_area(10 * i, 10 * i, 10 * i + 1, 10 * i + 1));
    g_assert_cmpuint(damage.count, ==, 1);
    assert_area(damage.areas[0], 0, 0, 10 * DAMAGE_MAX_AREAS + 1, 10 * DAMAGE_MAX_AREAS + 1);
}

struct rounds {
    struct painter painter;
    gint64 begun[4];
    unsigned int count;
    bool endless;
};

static bool count_round(void *data, bool first)
{
    struct rounds *rounds = data;

    if (first && rounds->count < G_N_ELEMENTS(rounds->begun))
        rounds->begun[rounds->count++] = g_get_monotonic_time();
    return rounds->endless;
}

static unsigned int wake_painter(struct rounds *rounds)
{
    unsigned int count;

    painter_enter(&rounds->painter);
    painter_wake(&rounds->painter);
    count = rounds->count;
    painter_leave(&rounds->painter);
    return count;
}

/* However often it is woken. The round reads the clock after the painter has. */
static void test_pace(void)
{
    struct rounds rounds = {0};

    painter_init(&rounds.painter, count_round, &rounds);
    painter_start(&rounds.painter);
    while (wake_painter(&rounds) < G_N_ELEMENTS(rounds.begun))
        g_thread_yield();
    painter_clear(&rounds.painter);
    for (size_t i = 1; i < G_N_ELEMENTS(rounds.begun); i++)
        g_assert_cmpint(rounds.begun[i] - rounds.begun[i - 1], >=, G_TIME_SPAN_SECOND / 100);
}

/* A picture that is never done: whoever asks for the lock gets it, and the thread ends. */
static void test_gives_way(void)
{
    struct rounds rounds = {.endless = true};

    painter_init(&rounds.painter, count_round, &rounds);
    painter_start(&rounds.painter);
    for (unsigned int i = 0; i < 1000; i++)
        wake_painter(&rounds);
    painter_clear(&rounds.painter);
}

static void set_up(struct fixture *f, gconstpointer data)
{
    fixture_set_up(f, data);
    f->driver.info.num_scanouts = f->engine.info.num_scanouts = 1;
    painter_start(&f->engine.scanout.painter);
}

static void tear_down(struct fixture *f, gconstpointer data)
{
    painter_stop(&f->engine.scanout.painter);
    fixture_tear_down(f, data);
}

#define SEND(f, ...)                                                                               \
    do {                                                                                           \
        __VA_ARGS__;                                                                               \
        fixture_send(f, &cmd, sizeof(cmd));                                                        \
    } while (0)

static void create_image(struct fixture *f, uint32_t id)
{
    struct {
        struct virtio_gpu_resource_attach_backing cmd;
        struct virtio_gpu_mem_entry entry;
    } attach = {
        .cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
                .resource_id = id,
                .nr_entries = 1},
        .entry = {.addr = 0x100000 * id, .length = (WIDTH * HEIGHT * 4 + 4095) & ~4095u},
    };

    SEND(f,
         struct virtio_gpu_resource_create_2d cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
                                                     .resource_id = id,
                                                     .format = BGRX,
                                                     .width = WIDTH,
                                                     .height = HEIGHT});
    fixture_send(f, &attach, sizeof(attach));
}

static void transfer_pixel(struct fixture *f, uint32_t id, uint32_t pixel)
{
    struct resource *resource = resource_find(&f->engine, id);
    uint32_t *pixels = resource ? resource->backing.iov.iov_base : NULL;

    for (uint32_t i = 0; pixels && i < WIDTH * HEIGHT; i++)
        pixels[i] = pixel;
    SEND(f, struct virtio_gpu_transfer_to_host_2d cmd = {.hdr.type =
                                                             VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
                                                         .r = {.width = WIDTH, .height = HEIGHT},
                                                         .resource_id = id});
}

static void flush_image(struct fixture *f, uint32_t id)
{
    SEND(f, struct virtio_gpu_resource_flush cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_FLUSH,
                                                    .r = {.width = WIDTH, .height = HEIGHT},
                                                    .resource_id = id});
}

static void show_image(struct fixture *f, uint32_t id, uint32_t width)
{
    if (id == BLOB)
        SEND(f,
             struct virtio_gpu_set_scanout_blob cmd = {.hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
                                                       .r = {.width = width, .height = HEIGHT},
                                                       .resource_id = id,
                                                       .width = WIDTH,
                                                       .height = HEIGHT,
                                                       .format = BGRX,
                                                       .strides = {WIDTH * 4}});
    else
        SEND(f, struct virtio_gpu_set_scanout cmd = {.hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT,
                                                     .r = {.width = width, .height = HEIGHT},
                                                     .resource_id = id});
}

static void unref_image(struct fixture *f, uint32_t id)
{
    SEND(f, struct virtio_gpu_resource_unref cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                                    .resource_id = id});
}

/* It may have to wait until the worker has answered what was sent before. */
static void make_blob(struct fixture *f)
{
    SEND(f, struct virtio_gpu_resource_create_blob cmd = {
                .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = 1},
                .resource_id = BLOB,
                .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
                .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
                .blob_id = 1,
                .size = WIDTH * HEIGHT * 4});
    while (fake_virgl.fences->len)
        fake_virgl_signal(0);
    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
    g_assert_nonnull(resource_find(&f->engine, BLOB));
}

static void make_all(struct fixture *f)
{
    for (uint32_t id = 1; id <= IMAGES; id++)
        create_image(f, id);
    if (!context_find(&f->engine, 1))
        fixture_create_context(f, 1);
    make_blob(f);
}

static uint32_t pick_pixel(GRand *rand)
{
    uint32_t id = (uint32_t)g_rand_int_range(rand, 1, IMAGES + 2);

    return id > IMAGES ? BLOB : id;
}

/* What is shown changes size, is written, and goes, while it is being copied. */
static void do_something(struct fixture *f, GRand *rand, unsigned int round)
{
    uint32_t id = pick_pixel(rand);

    switch (g_rand_int_range(rand, 0, 8)) {
    case 0:
    case 1:
        show_image(f, id, WIDTH - round % 3);
        break;
    case 2:
        transfer_pixel(f, id, round);
        break;
    case 3:
        unref_image(f, id);
        break;
    case 4:
        scanout_move_cursor(&f->engine, g_rand_int_range(rand, -9, WIDTH), 5);
        break;
    case 5:
        show_image(f, 0, 0);
        break;
    default:
        flush_image(f, id);
    }
    if (round % 50 == 49)
        fixture_reset(f);
    if (round % 50 == 49 || round % 7 == 0) {
        f->driver.last_token = 0;
        g_hash_table_remove_all(f->driver.answers);
    }
    if (!resource_find(&f->engine, BLOB) && round % 5 == 0)
        make_all(f);
}

static void test_changes(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    uint32_t last;

    make_all(f);
    for (unsigned int round = 0; round < 3000; round++)
        do_something(f, rand, round);

    /* In the end it shows what was flushed last. */
    fixture_reset(f);
    make_all(f);
    transfer_pixel(f, 1, 0x123456);
    show_image(f, 1, WIDTH);
    transfer_pixel(f, 2, 0xabcdef);
    show_image(f, 2, WIDTH);
    flush_image(f, 2);
    painter_run(&f->engine.scanout.painter);
    painter_stop(&f->engine.scanout.painter);
    painter_run(&f->engine.scanout.painter);
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
        memcpy(&last, f->driver.picture + 4 * i, sizeof(last));
        g_assert_cmphex(last & 0xffffff, ==, 0xabcdef);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/painter/damage", test_damage);
    g_test_add_func("/painter/pace", test_pace);
    g_test_add_func("/painter/gives-way", test_gives_way);
    g_test_add("/painter/changes", struct fixture, NULL, set_up, test_changes, tear_down);
    return g_test_run();
}
