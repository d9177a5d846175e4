// SPDX-License-Identifier: MIT
/* A VM that is saved, and an engine that goes on with it. */
#include "fixture.h"

#include "capset.h"
#include "queue.h"

#include "context.h"
#include "exit_code.h"
#include "loop.h"
#include "resource.h"
#include "state.h"

#include <string.h>

#define BGRX VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM
#define BGRA VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM

static void set_up(struct fixture *f, gconstpointer data)
{
    fixture_set_up(f, data);
    f->driver.info.num_scanouts = 1;
    f->engine.info.num_scanouts = 1;
}

static void ask_ok(struct fixture *f, const void *request, size_t size)
{
    g_assert_cmphex(fixture_ask(f, request, size), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

#define ASK_OK(f, ...)                                                                             \
    do {                                                                                           \
        __VA_ARGS__;                                                                               \
        ask_ok(f, &cmd, sizeof(cmd));                                                              \
    } while (0)

static void create_image(struct fixture *f, uint32_t id, uint32_t format, uint32_t side)
{
    struct {
        struct virtio_gpu_resource_attach_backing cmd;
        struct virtio_gpu_mem_entry entry[2];
    } attach = {
        .cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
                .resource_id = id,
                .nr_entries = 2},
        .entry = {{.addr = 0x10000 * id, .length = 4096},
                  {.addr = 0x900000 + 0x10000 * id, .length = 0x10000}},
    };

    ASK_OK(f, struct virtio_gpu_resource_create_2d cmd = {
                  .hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
                  .resource_id = id,
                  .format = format,
                  .width = side,
                  .height = side,
              });
    ask_ok(f, &attach, sizeof(attach));
}

static void show_image(struct fixture *f, uint32_t id)
{
    ASK_OK(f, struct virtio_gpu_set_scanout cmd = {
                  .hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT,
                  .r = {.x = 4, .y = 8, .width = 32, .height = 16},
                  .resource_id = id,
              });
}

static void set_cursor(struct fixture *f, uint32_t id)
{
    struct virtio_gpu_update_cursor cmd = {
        .hdr.type = VIRTIO_GPU_CMD_UPDATE_CURSOR,
        .pos = {.x = 3, .y = 2},
        .resource_id = id,
    };

    fake_driver_send(&f->driver, VGPU_QUEUE_CURSOR, &cmd, sizeof(cmd), 0);
    queue_run(&f->engine, VGPU_QUEUE_CURSOR, 1);
}

static void handle_events(struct fixture *f, uint32_t events)
{
    struct vgpu_engine_event event = {.events = events, .epoch = f->engine.epoch};
    g_autoptr(GError) error = NULL;
    bool stop = false;

    g_assert_true(loop_handle_event(&f->engine, &event, &stop, &error));
    g_assert_no_error(error);
    g_assert_false(stop);
}

/* What @f's engine says of itself, after the driver's event. */
static GBytes *save_state(struct fixture *f)
{
    handle_events(f, VGPU_EVENT_SAVE);
    g_assert_nonnull(f->driver.saved);
    return g_byte_array_free_to_bytes(g_steal_pointer(&f->driver.saved));
}

/* The guest's reset, and then the same VM as it was saved: as on another host. */
static void go_on(struct fixture *f, GBytes *state)
{
    fixture_reset(f);
    f->driver.to_load = g_bytes_ref(state);
    handle_events(f, VGPU_EVENT_LOAD | VGPU_EVENT_KICK);
    g_assert_null(f->driver.to_load);
}

static void test_empty(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GBytes) state = save_state(f);

    g_assert_cmpuint(g_bytes_get_size(state), ==, 4);
    go_on(f, state);
    g_assert_cmpuint(g_hash_table_size(f->engine.resources), ==, 0);
}

static void test_picture(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GBytes) state = NULL, again = NULL;
    struct scanout before;
    const struct resource *shown;

    create_image(f, 5, BGRX, 64);
    create_image(f, 6, BGRA, 16);
    memset(resource_find(&f->engine, 6)->image, 0x5a, 16 * 16 * 4);
    show_image(f, 5);
    set_cursor(f, 6);
    before = f->engine.scanout;
    state = save_state(f);
    go_on(f, state);

    shown = resource_find(&f->engine, 5);
    g_assert_true(f->engine.scanout.source == shown);
    g_assert_cmpuint(shown->width, ==, 64);
    g_assert_cmpuint(shown->backing.nr_entries, ==, 2);
    g_assert_cmphex(shown->backing.entries[1].iova, ==, 0x950000);
    g_assert_cmpmem(&f->engine.scanout.rect, sizeof(before.rect), &before.rect,
                    sizeof(before.rect));
    g_assert_cmpuint(f->driver.scanout.width, ==, 32);
    g_assert_cmpint(f->engine.scanout.cursor.x, ==, 3);
    g_assert_cmpmem(f->engine.scanout.cursor.image, 16 * 16 * 4, before.cursor.image, 16 * 16 * 4);
    g_assert_true(resource_find(&f->engine, 6)->format == before.cursor.format);

    /* Saved once more, it says the same. */
    again = save_state(f);
    g_assert_cmpuint(g_bytes_get_size(again), ==, g_bytes_get_size(state));
}

static void test_blobs(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct {
        struct virtio_gpu_resource_create_blob cmd;
        struct virtio_gpu_mem_entry entry;
    } guest = {
        .cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
                .resource_id = 8,
                .blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST,
                .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_SHAREABLE,
                .nr_entries = 1,
                .size = 8192},
        .entry = {.addr = 0x40000, .length = 8192},
    };
    g_autoptr(GBytes) state = NULL;
    struct virtio_gpu_resource_map_blob map = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
                                               .resource_id = 7};

    fixture_create_context(f, 3);
    fixture_create_blob(f, 3, 7, 4096);
    g_assert_cmphex(fixture_ask(f, &map, sizeof(map)), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    ask_ok(f, &guest, sizeof(guest));
    ASK_OK(f, struct virtio_gpu_set_scanout_blob cmd = {
                  .hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
                  .r = {.width = 16, .height = 16},
                  .resource_id = 8,
                  .width = 32,
                  .height = 32,
                  .format = BGRX,
                  .strides = {128},
              });
    state = save_state(f);
    go_on(f, state);

    /* The host's memory is lost: its id is taken, and the guest can give it back without an error.
     */
    g_assert_true(resource_find(&f->engine, 7)->lost);
    g_assert_cmphex(fixture_ask(f, &map, sizeof(map)), >=, VIRTIO_GPU_RESP_ERR_UNSPEC);
    g_assert_true(f->engine.scanout.source == resource_find(&f->engine, 8));
    ASK_OK(f, struct virtio_gpu_resource_unmap_blob cmd = {
                  .hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB, .resource_id = 7});
    ASK_OK(f,
           struct virtio_gpu_ctx_resource cmd = {
               .hdr = {.type = VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE, .ctx_id = 3}, .resource_id = 7});
    ASK_OK(f, struct virtio_gpu_resource_unref cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                                      .resource_id = 7});
    ASK_OK(f, struct virtio_gpu_resource_unref cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                                      .resource_id = 8});
}

/* Work for a context that was on another host never counts as done, and does not harm others. */
static void test_contexts(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_destroy destroy = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = 3}};
    g_autoptr(GBytes) state = NULL;
    uint32_t token;

    fixture_create_context(f, 3);
    state = save_state(f);
    go_on(f, state);
    g_assert_false(context_alive(&f->engine, 3));
    token = fixture_send_fence(f, 3, 1, 9);
    g_assert_cmphex(fixture_answer_type(f, token), ==, 0);
    fixture_create_context(f, 4);
    g_assert_true(context_alive(&f->engine, 4));
    ask_ok(f, &destroy, sizeof(destroy));
    g_assert_cmphex(fixture_answer_type(f, token), >=, VIRTIO_GPU_RESP_ERR_UNSPEC);
    fixture_create_context(f, 3);
    g_assert_true(context_alive(&f->engine, 3));
}

static bool load_state(struct fixture *f, const void *data, size_t size, GError **error)
{
    fixture_reset(f);
    return state_load(&f->engine, data, size, error);
}

static void test_damaged(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GBytes) state = NULL;
    g_autofree uint8_t *copy = NULL;
    size_t size;

    fixture_create_context(f, 3);
    create_image(f, 5, BGRX, 64);
    show_image(f, 5);
    state = save_state(f);
    size = g_bytes_get_size(state);
    copy = g_memdup2(g_bytes_get_data(state, NULL), size);
    for (size_t i = 0; i < size; i++) {
        g_autoptr(GError) error = NULL;
        bool ok = load_state(f, copy, i, &error);

        /* The end of a record is the end of a state. */
        if (!ok)
            g_assert_error(error, ENGINE_ERROR, EXIT_CODE_DEVICE);
    }
    for (size_t i = 0; i < size; i++) {
        copy[i] ^= 0xff;
        load_state(f, copy, size, NULL);
        copy[i] ^= 0xff;
    }
    copy[0]++;
    g_assert_false(load_state(f, copy, size, NULL));
}

/* An image gets its content once, however often a made-up state says so. */
static void test_content_again(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const size_t transfer = 8 + sizeof(struct virtio_gpu_transfer_to_host_2d);
    g_autoptr(GByteArray) state = g_byte_array_new();
    g_autofree uint8_t *last = NULL;

    create_image(f, 5, BGRX, 64);
    state_save(&f->engine, state);
    last = g_memdup2(state->data + state->len - transfer, transfer);
    g_byte_array_append(state, last, (guint)transfer);
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_MESSAGE, "*: 3 of 4 parts*");
    g_assert_true(load_state(f, state->data, state->len, NULL));
    g_test_assert_expected_messages();
}

/* A request that reaches the GPU, or makes the host's memory a blob. */
static void test_forbidden(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct {
        uint32_t version, kind, size;
        struct virtio_gpu_resource_create_blob cmd;
    } __attribute__((packed)) blob = {
        .version = STATE_VERSION,
        .kind = 3,
        .size = sizeof(blob.cmd),
        .cmd = {.hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = 3},
                .resource_id = 7,
                .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
                .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
                .blob_id = 1,
                .size = 4096},
    };

    g_assert_true(load_state(f, &blob, sizeof(blob), NULL));
    g_assert_null(resource_find(&f->engine, 7));
    blob.cmd.hdr.type = VIRTIO_GPU_CMD_CTX_CREATE;
    g_assert_true(load_state(f, &blob, sizeof(blob), NULL));
    g_assert_null(context_find(&f->engine, 3));
}

/* Whatever it gets, the engine goes on: systemd would not start it again. */
static void test_goes_on(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const uint32_t other[2] = {STATE_VERSION + 1, 0};

    /* The guest has reset the device meanwhile. */
    handle_events(f, VGPU_EVENT_LOAD);
    f->driver.to_load = g_bytes_new_static(other, sizeof(other));
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*written by another version*");
    handle_events(f, VGPU_EVENT_LOAD);
    g_test_assert_expected_messages();
    fixture_create_context(f, 3);
    g_assert_true(context_alive(&f->engine, 3));
}

/* The guest keeps what it was told of the renderer. */
static void test_hash(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint64_t hash = capset_hash(&f->engine, 1);

    g_assert_cmphex(hash, !=, 0);
    g_assert_cmphex(capset_hash(&f->engine, 1), ==, hash);
    g_assert_cmphex(capset_hash(&f->engine, 2), !=, hash);
    f->engine.capsets[0].max_version++;
    g_assert_cmphex(capset_hash(&f->engine, 1), !=, hash);
}

#define add(path, function)                                                                        \
    g_test_add(path, struct fixture, NULL, set_up, function, fixture_tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/state/empty", test_empty);
    add("/state/picture", test_picture);
    add("/state/blobs", test_blobs);
    add("/state/contexts", test_contexts);
    add("/state/damaged", test_damaged);
    add("/state/content-again", test_content_again);
    add("/state/forbidden", test_forbidden);
    add("/state/goes-on", test_goes_on);
    add("/state/hash", test_hash);
    return g_test_run();
}
