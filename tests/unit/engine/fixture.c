// SPDX-License-Identifier: MIT
#include "fixture.h"

#include "loop.h"
#include "queue.h"
#include "renderer.h"

#include <string.h>

void fixture_set_up(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GError) error = NULL;

    fake_virgl_init();
    fake_driver_init(&f->driver);
    engine_init(&f->engine, &f->driver.base);
    f->engine.info = f->driver.info;
    f->engine.epoch = f->driver.info.epoch;
    g_assert_true(engine_start_renderer(&f->engine, &error));
    g_assert_no_error(error);
}

void fixture_tear_down(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    engine_reset(&f->engine);
    renderer_stop();
    engine_clear(&f->engine);
    fake_driver_clear(&f->driver);
    fake_virgl_clear();
}

uint32_t fixture_send(struct fixture *f, const void *request, size_t size)
{
    uint32_t token = fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, request, size, ANSWER_ROOM);

    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
    return token;
}

uint32_t fixture_answer_type(struct fixture *f, uint32_t token)
{
    const GByteArray *answer = fake_driver_answer(&f->driver, token);
    struct virtio_gpu_ctrl_hdr hdr;

    if (!answer)
        return 0;
    g_assert_cmpuint(answer->len, >=, sizeof(hdr));
    memcpy(&hdr, answer->data, sizeof(hdr));
    return hdr.type;
}

uint32_t fixture_ask(struct fixture *f, const void *request, size_t size)
{
    return fixture_answer_type(f, fixture_send(f, request, size));
}

void fixture_create_context(struct fixture *f, uint32_t ctx_id)
{
    struct virtio_gpu_ctx_create cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = ctx_id},
        .nlen = 4,
        .context_init = VIRTIO_GPU_CAPSET_VENUS,
        .debug_name = "test",
    };

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

void fixture_create_blob(struct fixture *f, uint32_t ctx_id, uint32_t resource_id, uint64_t size)
{
    struct virtio_gpu_resource_create_blob cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = ctx_id},
        .resource_id = resource_id,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
        .blob_id = 1,
        .size = size,
    };

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

uint32_t fixture_send_fence(struct fixture *f, uint32_t ctx_id, uint8_t ring_idx, uint64_t fence_id)
{
    struct virtio_gpu_cmd_submit cmd = {
        .hdr =
            {
                .type = VIRTIO_GPU_CMD_SUBMIT_3D,
                .flags = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX,
                .fence_id = fence_id,
                .ctx_id = ctx_id,
                .ring_idx = ring_idx,
            },
    };

    return fixture_send(f, &cmd, sizeof(cmd));
}

void fixture_reset(struct fixture *f)
{
    struct vgpu_engine_event event = {
        .events = VGPU_EVENT_RESET,
        .epoch = f->driver.info.epoch,
    };
    g_autoptr(GError) error = NULL;
    unsigned int before = f->driver.reset_dones;
    bool stop = false;

    /* The driver by itself takes back what the engine had of the epoch. */
    f->driver.info.epoch++;
    g_hash_table_remove_all(f->driver.pins);
    g_hash_table_remove_all(f->driver.published);
    f->driver.scanout = (struct vgpu_scanout){0};

    g_assert_true(loop_handle_event(&f->engine, &event, &stop, &error));
    g_assert_no_error(error);
    g_assert_false(stop);
    g_assert_cmpuint(f->driver.reset_dones, ==, before + 1);
    g_assert_cmpuint(f->engine.epoch, ==, f->driver.info.epoch);
}
