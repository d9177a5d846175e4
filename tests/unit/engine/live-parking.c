// SPDX-License-Identifier: MIT
/* Two programs of one guest, of which one has its ring held up. */
#include "live.h"

#include <signal.h>

#define HELD   1u
#define OTHER  2u
#define ROUNDS 200

/* Memory made and a fence passed, again and again; microseconds for one. */
static gint64 serve_other(void)
{
    struct virtio_gpu_cmd_submit fence = {
        .hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D,
                .flags = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX,
                .ctx_id = OTHER},
    };
    gint64 total = 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct virtio_gpu_resource_unref unref = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF};
        gint64 begin = g_get_monotonic_time();
        uint32_t blob = live_create_blob(OTHER, ENGINE_PAGE_SIZE, &unref.resource_id);

        g_assert_cmphex(live_wait_for(blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
        g_assert_cmphex(live_wait_for(live_send(&fence, sizeof(fence))), ==,
                        VIRTIO_GPU_RESP_OK_NODATA);
        g_assert_cmphex(live_type_of(live_send(&unref, sizeof(unref))), ==,
                        VIRTIO_GPU_RESP_OK_NODATA);
        total += g_get_monotonic_time() - begin;
    }
    return total / ROUNDS;
}

/* Held until it is released: its answers come then, and OTHER's came meanwhile. */
static void test_held(void)
{
    static const uint32_t some_command[] = {137, 0, 1, 0};
    uint32_t blob, id;
    gint64 usual, meanwhile;
    uint32_t *ring;
    pid_t worker;

    live_create_context(HELD);
    worker = live_worker();
    live_create_context(OTHER);
    ring = live_make_ring(HELD);
    usual = serve_other();

    kill(worker, SIGSTOP);
    live_put_in_ring(ring, some_command, G_N_ELEMENTS(some_command));
    g_assert_cmphex(live_type_of(live_wait_for_ring(HELD, 0, sizeof(some_command))), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    blob = live_create_blob(HELD, ENGINE_PAGE_SIZE, &id);
    meanwhile = serve_other();
    g_test_message("a round of the other program: %d us, meanwhile %d us", (int)usual,
                   (int)meanwhile);
    g_assert_cmphex(live_type_of(blob), ==, 0);

    kill(worker, SIGCONT);
    g_assert_cmphex(live_wait_for(blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(live_type_of(live_destroy_context(HELD)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* Its ring waits for something that the worker cannot receive any more. The guest ends it. */
static void test_for_ever(void)
{
    static const uint32_t wait_for_virtqueue[] = {252, 0, 0x2c03ff80, 0x55a1, 1, 0};
    uint32_t blob, id;
    uint32_t *ring;

    live_create_context(HELD);
    ring = live_make_ring(HELD);
    live_put_in_ring(ring, wait_for_virtqueue, G_N_ELEMENTS(wait_for_virtqueue));
    g_assert_cmphex(live_type_of(live_wait_for_ring(HELD, 0, sizeof(wait_for_virtqueue))), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    blob = live_create_blob(HELD, ENGINE_PAGE_SIZE, &id);
    serve_other();
    g_assert_cmphex(live_type_of(blob), ==, 0);
    g_assert_cmphex(live_type_of(live_destroy_context(HELD)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(live_type_of(blob), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    serve_other();
}

int main(int argc, char **argv)
{
    int status;

    live_begin(&argc, &argv, 300); /* an engine that waits for its worker would wait forever */
    g_test_add_func("/live/held", test_held);
    g_test_add_func("/live/for-ever", test_for_ever);
    status = g_test_run();
    live_end();
    return status;
}
