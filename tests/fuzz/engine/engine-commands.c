// SPDX-License-Identifier: MIT
/*
 * A guest that sends any commands in any order, a GPU that is done when it likes, resets in
 * between. What must hold: no chain is lost or answered twice, virglrenderer is never used in a way
 * that it does not survive, or in which it would wait for a worker that may be held up (the fake
 * one asserts both), and a reset leaves nothing behind.
 */
#include "fixture.h"
#include "queue.h"

#include <errno.h>
#include <string.h>

#define MAX_REQUEST 160u

struct input {
    const uint8_t *data;
    size_t left;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t take8(struct input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->data++;
}

static void take_bytes(struct input *in, uint8_t *buf, size_t size)
{
    size_t n = MIN(size, in->left);

    memcpy(buf, in->data, n);
    memset(buf + n, 0, size - n);
    in->data += n;
    in->left -= n;
}

static const uint32_t command_types[] = {
    VIRTIO_GPU_CMD_GET_DISPLAY_INFO,
    VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
    VIRTIO_GPU_CMD_RESOURCE_UNREF,
    VIRTIO_GPU_CMD_SET_SCANOUT,
    VIRTIO_GPU_CMD_RESOURCE_FLUSH,
    VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
    VIRTIO_GPU_CMD_GET_CAPSET_INFO,
    VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
    VIRTIO_GPU_CMD_GET_CAPSET,
    VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
    VIRTIO_GPU_CMD_GET_EDID,
    VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
    VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
    VIRTIO_GPU_CMD_CTX_CREATE,
    VIRTIO_GPU_CMD_CTX_DESTROY,
    VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE,
    VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE,
    VIRTIO_GPU_CMD_SUBMIT_3D,
    VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
    VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB,
    VIRTIO_GPU_CMD_UPDATE_CURSOR,
    VIRTIO_GPU_CMD_MOVE_CURSOR,
    0xdead,
};

static struct virtio_gpu_rect take_rect(struct input *in)
{
    return (struct virtio_gpu_rect){
        .x = take8(in) & 15, .y = take8(in) & 15, .width = take8(in), .height = take8(in)};
}

static uint32_t take_format(struct input *in)
{
    static const uint32_t formats[] = {
        VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
        VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM,
        VIRTIO_GPU_FORMAT_R8G8B8A8_UNORM,
        7,
    };

    return formats[take8(in) % G_N_ELEMENTS(formats)];
}

/* The same for what makes a picture; @request begins with its header and holds a resource's id
 * behind it. */
static void make_likely_2d(struct input *in, uint8_t *request, uint32_t type, uint32_t id)
{
    if (type == VIRTIO_GPU_CMD_RESOURCE_CREATE_2D) {
        struct virtio_gpu_resource_create_2d *cmd = (void *)request;

        cmd->format = take_format(in);
        cmd->width = take8(in);
        cmd->height = take8(in);
    } else if (type == VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING) {
        struct virtio_gpu_resource_attach_backing *cmd = (void *)request;
        struct virtio_gpu_mem_entry *entry = (void *)(cmd + 1);

        cmd->nr_entries = 1;
        *entry = (struct virtio_gpu_mem_entry){.addr = 1u << 20,
                                               .length = (take8(in) & 63) * ENGINE_PAGE_SIZE};
    } else if (type == VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D) {
        struct virtio_gpu_transfer_to_host_2d *cmd = (void *)request;

        cmd->r = take_rect(in);
        cmd->offset = take8(in) * 16u;
        cmd->resource_id = id;
    } else if (type == VIRTIO_GPU_CMD_RESOURCE_FLUSH) {
        struct virtio_gpu_resource_flush *cmd = (void *)request;

        cmd->r = take_rect(in);
        cmd->resource_id = id;
    } else if (type == VIRTIO_GPU_CMD_SET_SCANOUT) {
        struct virtio_gpu_set_scanout *cmd = (void *)request;

        cmd->r = take_rect(in);
        cmd->scanout_id = 0;
        cmd->resource_id = id;
    } else if (type == VIRTIO_GPU_CMD_SET_SCANOUT_BLOB) {
        struct virtio_gpu_set_scanout_blob *cmd = (void *)request;

        cmd->r = take_rect(in);
        cmd->scanout_id = 0;
        cmd->resource_id = id;
        cmd->width = take8(in);
        cmd->height = take8(in);
        cmd->format = take_format(in);
        cmd->strides[0] = take8(in) * 4u;
        cmd->offsets[0] = take8(in);
    } else if (type == VIRTIO_GPU_CMD_UPDATE_CURSOR || type == VIRTIO_GPU_CMD_MOVE_CURSOR) {
        struct virtio_gpu_update_cursor *cmd = (void *)request;

        cmd->pos.scanout_id = 0;
        cmd->pos.x = (uint32_t)(int8_t)take8(in);
        cmd->pos.y = (uint32_t)(int8_t)take8(in);
        cmd->resource_id = id;
    }
}

/* The same for what goes to a worker: memory of the host, and commands that may make it wait. */
static void make_likely_3d(struct input *in, uint8_t *request, uint32_t type, uint32_t id)
{
    static const uint32_t venus[] = {188, 189, 190, 191, 251, 253};

    if (type == VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB) {
        struct virtio_gpu_resource_create_blob *cmd = (void *)request;
        uint8_t choice = take8(in);

        cmd->resource_id = id;
        cmd->blob_mem = choice & 0x80 ? choice & 7 : VIRTIO_GPU_BLOB_MEM_HOST3D;
        cmd->blob_flags = choice & 1;
        cmd->nr_entries = choice >> 6 & 1;
        cmd->blob_id = choice >> 5 & 1;
        cmd->size = (choice & 15) * ENGINE_PAGE_SIZE;
    } else if (type == VIRTIO_GPU_CMD_SUBMIT_3D) {
        struct virtio_gpu_cmd_submit *cmd = (void *)request;
        uint8_t choice = take8(in);
        uint32_t words[] = {venus[choice % G_N_ELEMENTS(venus)], 0, id, 0, take8(in), 0, 0};

        cmd->size = choice & 0x80 ? sizeof(words) - sizeof(words[0]) : sizeof(words);
        memcpy(cmd + 1, words, sizeof(words));
    }
}

/* Small numbers where random ones would never meet. */
static void make_likely(struct input *in, uint8_t *request, uint32_t type)
{
    struct virtio_gpu_ctrl_hdr hdr = {
        .type = type,
        .flags = take8(in) & (VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX),
        .fence_id = take8(in),
        .ctx_id = take8(in) & 3,
        .ring_idx = take8(in) & 0x47,
    };
    uint32_t id = take8(in) & 7;
    uint32_t capset = VIRTIO_GPU_CAPSET_VENUS;

    memcpy(request, &hdr, sizeof(hdr));
    memcpy(request + sizeof(hdr), &id, sizeof(id));
    if (type == VIRTIO_GPU_CMD_CTX_CREATE)
        memcpy(request + G_STRUCT_OFFSET(struct virtio_gpu_ctx_create, context_init), &capset,
               sizeof(capset));
    make_likely_2d(in, request, type, id);
    make_likely_3d(in, request, type, id);
}

static void send_command(struct fixture *f, struct input *in)
{
    uint8_t request[MAX_REQUEST];
    uint8_t choice = take8(in);
    uint32_t type = command_types[(choice & 0x7f) % G_N_ELEMENTS(command_types)];
    size_t wanted = take8(in);
    size_t size = MIN(wanted, MAX_REQUEST);
    size_t room = take8(in) * 8u;
    bool cursor = type == VIRTIO_GPU_CMD_UPDATE_CURSOR || type == VIRTIO_GPU_CMD_MOVE_CURSOR;
    uint32_t queue = choice == 0x7f || cursor ? VGPU_QUEUE_CURSOR : VGPU_QUEUE_CONTROL;

    take_bytes(in, request, sizeof(request));
    if (!(choice & 0x80))
        make_likely(in, request, type);
    fake_driver_send(&f->driver, queue, request, size, room);
    queue_run(&f->engine, queue, 4);
}

static void fail_something(struct fixture *f, uint8_t what)
{
    fake_virgl.context_result = what & 1 ? ENOMEM : 0;
    fake_virgl.submit_result = what & 2 ? -1 : 0;
    fake_virgl.fence_result = what & 4 ? -1 : 0;
    fake_virgl.blob_result = what & 8 ? -1 : 0;
    fake_virgl.map_result = what & 16 ? -EINVAL : 0;
    fake_virgl.map_misaligned = what & 32;
    f->driver.pin_result = what & 64 ? ENOMEM : 0;
    f->driver.publish_result = what & 128 ? EEXIST : 0;
}

static void fail_picture(struct fixture *f, uint8_t what)
{
    f->driver.picture_result = what & 1 ? ENODEV : 0;
    f->driver.scanout_result = what & 2 ? ESTALE : 0;
    f->driver.display.state = what & 4 ? 0 : VGPU_DISPLAY_CONNECTED;
    f->driver.display.edid_size = what & 8 ? what * 8u : 0;
}

static void step(struct fixture *f, struct input *in)
{
    uint8_t op = take8(in);

    if (op < 0xe0) {
        send_command(f, in);
    } else if (op < 0xf0) {
        if (fake_virgl.fences->len)
            fake_virgl_signal(take8(in) % fake_virgl.fences->len);
    } else if (op < 0xf4) {
        fail_picture(f, take8(in));
    } else if (op < 0xf8) {
        fail_something(f, take8(in));
    } else {
        /* What was in flight stays unanswered, by right. */
        fixture_reset(f);
        f->driver.last_token = 0;
        g_hash_table_remove_all(f->driver.answers);
        g_assert_cmpuint(g_hash_table_size(fake_virgl.resources), ==, 0);
    }
    painter_run(&f->engine.scanout.painter);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==,
                     g_queue_get_length(&f->engine.fences.pending) - f->engine.fences.own +
                         g_queue_get_length(&f->engine.parking.requests) -
                         f->engine.parking.answered);
}

static void drop_log(const char *domain G_GNUC_UNUSED, GLogLevelFlags level G_GNUC_UNUSED,
                     const char *message G_GNUC_UNUSED, void *data G_GNUC_UNUSED)
{
}

int LLVMFuzzerInitialize(int *argc G_GNUC_UNUSED, char ***argv G_GNUC_UNUSED)
{
    g_log_set_default_handler(drop_log, NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.data = data, .left = size};
    uint8_t kind = take8(&in);
    struct fixture f;

    fixture_set_up(&f, NULL);
    f.driver.info.num_scanouts = f.engine.info.num_scanouts = kind >> 1 & 1;
    while (in.left)
        step(&f, &in);
    fixture_tear_down(&f, NULL);
    return 0;
}
