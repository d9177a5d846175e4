// SPDX-License-Identifier: MIT
/*
 * A guest and its CUDA worker, which send each other and the engine what they like, in any order.
 * What must hold: no chain is lost or answered twice, and nothing of a context stays when it has
 * ended.
 */
#include "fake_cuda_worker.h"
#include "fixture.h"
#include "watch.h"
#include "wire/channel.h"
#include "wire/control.h"
#include "lib/descriptor.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONTEXT 3

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

static uint64_t take_address(struct input *in)
{
    static const uint64_t addresses[] = {0x110000000000, 0x110000100000, 0, CONTROL_PAGE_BLOB};

    return addresses[take8(in) % G_N_ELEMENTS(addresses)];
}

static uint64_t take_bytes(struct input *in)
{
    static const uint64_t sizes[] = {4096, sizeof(struct channel_shared), 65536, 0, 1, UINT64_MAX};

    return sizes[take8(in) % G_N_ELEMENTS(sizes)];
}

static void send_request(struct fixture *f, const void *request, size_t size)
{
    fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, request, size, 512);
    queue_run(&f->engine, VGPU_QUEUE_CONTROL, 4);
}

static void submit(struct fixture *f, struct input *in)
{
    struct {
        struct virtio_gpu_cmd_submit cmd;
        struct control_hello hello;
    } request = {.cmd.hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = CONTEXT}};
    uint8_t ring = take8(in);
    size_t bytes = sizeof(struct control_message);

    if (ring & 0x80)
        request.cmd.hdr.flags = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX;
    request.cmd.hdr.ring_idx = ring & 7;
    request.hello.message = (struct control_message){CONTROL_MAGIC, take8(in) % (CONTROL_WAIT + 2u),
                                                     take_address(in), take_bytes(in)};
    if (ring & 0x40 || request.hello.message.kind == CONTROL_HELLO)
        bytes = sizeof(request.hello);
    request.cmd.size = (uint32_t)bytes;
    send_request(f, &request, sizeof(request.cmd) + bytes);
}

static int make_file(struct input *in)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    uint8_t choice = take8(in);

    if (ftruncate(fd, (off_t)(take_bytes(in) & 0xfffff)) == 0 && !(choice & 1))
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
    return fd;
}

static void reply(struct input *in)
{
    static const size_t sizes[] = {sizeof(struct control_reply), sizeof(struct control_welcome), 8,
                                   CONTROL_REPLY_MOST + 8};
    union {
        struct control_reply reply;
        uint8_t bytes[CONTROL_REPLY_MOST + 8];
    } message = {{0}};
    uint8_t choice = take8(in);
    int fd = choice & 0x10 ? make_file(in) : -1;

    message.reply = (struct control_reply){choice & 0x20 ? 0 : CONTROL_MAGIC,
                                           take8(in) % (CONTROL_ANSWERED + 2u), take_address(in)};
    if (fake_cuda_worker >= 0)
        descriptor_send(fake_cuda_worker, &message, sizes[choice & 3], MSG_DONTWAIT, &fd, 1);
    if (fd >= 0)
        close(fd);
}

static void use_resource(struct fixture *f, struct input *in)
{
    uint8_t choice = take8(in);
    uint32_t id = 1 + (choice & 3);
    struct virtio_gpu_resource_create_blob create = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = CONTEXT},
        .resource_id = id,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE};
    struct virtio_gpu_resource_map_blob map = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
                                               .resource_id = id,
                                               .offset = (uint64_t)id << 19};
    struct virtio_gpu_resource_unref unref = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                              .resource_id = id};

    if (choice < 0x60) {
        create.blob_id = take_address(in);
        create.size = take_bytes(in);
        send_request(f, &create, sizeof(create));
    } else if (choice < 0xc0) {
        send_request(f, &map, sizeof(map));
    } else {
        send_request(f, &unref, sizeof(unref));
    }
}

static void make_or_end_context(struct fixture *f, uint8_t choice)
{
    struct virtio_gpu_ctx_create create = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = CONTEXT},
        .context_init = CONTROL_CAPSET};
    struct virtio_gpu_ctx_destroy destroy = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = CONTEXT}};

    if (choice & 1)
        send_request(f, &create, sizeof(create));
    else
        send_request(f, &destroy, sizeof(destroy));
}

static void step(struct fixture *f, struct input *in)
{
    uint8_t op = take8(in);

    if (op < 0x60)
        submit(f, in);
    else if (op < 0xa0)
        reply(in);
    else if (op < 0xd0)
        use_resource(f, in);
    else if (op < 0xe0)
        make_or_end_context(f, take8(in));
    else if (op < 0xe4)
        fake_cuda_worker_end();
    else if (op < 0xf0)
        watch_contexts(&f->engine);
    if (op & 1)
        watch_lost(&f->engine);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==,
                     g_queue_get_length(&f->engine.fences.pending) - f->engine.fences.own +
                         g_queue_get_length(&f->engine.parking.requests) -
                         f->engine.parking.answered);
    g_assert_cmpuint(f->engine.cuda.waits, <=, CUDA_WAITS_MAX);
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
    const struct cuda_worker worker = {.path = "fuzz"};
    struct input in = {.data = data, .left = size};
    struct fixture f;

    fixture_set_up(&f, NULL);
    f.driver.info.window_bytes = f.engine.info.window_bytes = 8u << 20;
    cuda_host_offer(&f.engine.cuda, &worker);
    f.engine.capsets[f.engine.num_capsets++] =
        (struct engine_capset){CONTROL_CAPSET, CONTROL_MAJOR, sizeof(struct control_caps)};
    make_or_end_context(&f, 1);
    while (in.left)
        step(&f, &in);
    engine_reset(&f.engine);
    g_assert_cmpuint(f.engine.shm_bytes, ==, 0);
    g_assert_cmpuint(f.engine.cuda.waits, ==, 0);
    fake_cuda_worker_end();
    fixture_tear_down(&f, NULL);
    return 0;
}
