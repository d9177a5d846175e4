// SPDX-License-Identifier: MIT
/* Each chain is answered once, when its fence is done and not before. */
#include "fixture.h"

#include "watch.h"

#include <string.h>

#define ANY_RING (VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX)

static struct virtio_gpu_ctrl_hdr answer_header(struct fixture *f, uint32_t token)
{
    struct virtio_gpu_ctrl_hdr hdr;

    g_assert_nonnull(fake_driver_answer(&f->driver, token));
    memcpy(&hdr, fake_driver_answer(&f->driver, token)->data, sizeof(hdr));
    return hdr;
}

static void test_ring(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr hdr;
    uint32_t token;

    fixture_create_context(f, 3);
    token = fixture_send_fence(f, 3, 2, 0x1122334455667788);
    g_assert_null(fake_driver_answer(&f->driver, token));

    fake_virgl_signal(0);
    hdr = answer_header(f, token);
    g_assert_cmphex(hdr.type, ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(hdr.flags, ==, ANY_RING);
    g_assert_cmphex(hdr.fence_id, ==, 0x1122334455667788);
    g_assert_cmpuint(hdr.ctx_id, ==, 3);
    g_assert_cmpuint(hdr.ring_idx, ==, 2);
}

/* virglrenderer may skip fences that a later one covers; other timelines are not touched. */
static void test_merge(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t first, second, other_ring, other_context;

    fixture_create_context(f, 1);
    fixture_create_context(f, 2);
    first = fixture_send_fence(f, 1, 1, 10);
    other_ring = fixture_send_fence(f, 1, 0, 11);
    other_context = fixture_send_fence(f, 2, 1, 12);
    second = fixture_send_fence(f, 1, 1, 5); /* the guest's numbers mean nothing to us */

    fake_virgl_signal(3);
    g_assert_nonnull(fake_driver_answer(&f->driver, first));
    g_assert_nonnull(fake_driver_answer(&f->driver, second));
    g_assert_null(fake_driver_answer(&f->driver, other_ring));
    g_assert_null(fake_driver_answer(&f->driver, other_context));

    fake_virgl_signal(0); /* late news of the first: done already */
    fake_virgl_signal(0);
    fake_virgl_signal(0);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
}

/* The same number twice is the guest's own problem, but both chains come back. */
static void test_same_id(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t first, second;

    fixture_create_context(f, 1);
    first = fixture_send_fence(f, 1, 1, 10);
    second = fixture_send_fence(f, 1, 1, 10);
    fake_virgl_signal(0);
    g_assert_nonnull(fake_driver_answer(&f->driver, first));
    g_assert_null(fake_driver_answer(&f->driver, second));
    fake_virgl_signal(0);
    g_assert_nonnull(fake_driver_answer(&f->driver, second));
}

/* virglrenderer's thread may be done before the call that made the fence returns. */
static void test_at_once(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    fixture_create_context(f, 1);
    fake_virgl.signal_at_once = true;
    for (uint64_t i = 1; i <= 100; i++)
        g_assert_nonnull(fake_driver_answer(&f->driver, fixture_send_fence(f, 1, 1, i)));
}

static void test_invalid_ring(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr hdr;

    fixture_create_context(f, 1);
    hdr = answer_header(f, fixture_send_fence(f, 1, 64, 9));
    g_assert_cmphex(hdr.type, ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(hdr.flags, ==, ANY_RING);
    g_assert_cmphex(hdr.fence_id, ==, 9);

    hdr = answer_header(f, fixture_send_fence(f, 55, 1, 9));
    g_assert_cmphex(hdr.type, ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmphex(hdr.fence_id, ==, 9);
}

static void destroy_context(struct fixture *f, uint32_t ctx_id)
{
    struct virtio_gpu_ctx_destroy cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = ctx_id},
    };

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* If the worker has ended when the fence is made, the context is lost. */
static void test_dead_worker(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t first, second;

    fixture_create_context(f, 1);
    first = fixture_send_fence(f, 1, 1, 1);
    fake_virgl.fence_result = -1;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 1*worker has ended*");
    second = fixture_send_fence(f, 1, 1, 2);
    g_test_assert_expected_messages();
    g_assert_null(fake_driver_answer(&f->driver, second));
    destroy_context(f, 1);
    g_assert_cmphex(answer_header(f, first).type, ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmphex(answer_header(f, second).type, ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmpuint(fake_virgl.fences->len, ==, 0);
}

/* Linux takes a fence as the end of all before it: an error must not overtake them. */
static void test_error_waits(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_cmd_submit bad = {
        .hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D,
                .flags = ANY_RING,
                .fence_id = 2,
                .ctx_id = 1,
                .ring_idx = 1},
        .size = 3,
    };
    uint32_t good_token, bad_token, last_token;

    fixture_create_context(f, 1);
    good_token = fixture_send_fence(f, 1, 1, 1);
    bad_token = fixture_send(f, &bad, sizeof(bad));
    last_token = fixture_send_fence(f, 1, 1, 3);
    g_assert_null(fake_driver_answer(&f->driver, bad_token));

    fake_virgl_signal(0);
    g_assert_cmphex(answer_header(f, good_token).type, ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(answer_header(f, bad_token).type, ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_null(fake_driver_answer(&f->driver, last_token));
    fake_virgl_signal(0);
    g_assert_nonnull(fake_driver_answer(&f->driver, last_token));
}

static void test_global(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr cmd = {
        .type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO,
        .flags = VIRTIO_GPU_FLAG_FENCE,
        .fence_id = 42,
        .ring_idx = 7, /* not valid without its flag */
    };
    struct virtio_gpu_ctrl_hdr hdr = answer_header(f, fixture_send(f, &cmd, sizeof(cmd)));

    g_assert_cmphex(hdr.type, ==, VIRTIO_GPU_RESP_OK_DISPLAY_INFO);
    g_assert_cmphex(hdr.flags, ==, VIRTIO_GPU_FLAG_FENCE);
    g_assert_cmphex(hdr.fence_id, ==, 42);
}

static void test_context_destroyed(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_destroy cmd = {.hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = 1}};
    uint32_t pending, other;

    fixture_create_context(f, 1);
    fixture_create_context(f, 2);
    pending = fixture_send_fence(f, 1, 1, 1);
    other = fixture_send_fence(f, 2, 1, 2);
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(answer_header(f, pending).type, ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmphex(answer_header(f, pending).fence_id, ==, 1);
    g_assert_null(fake_driver_answer(&f->driver, other));
}

/* A probe answers nothing, is never made twice, and finds a dead worker out. */
static void test_probe(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t token;

    fixture_create_context(f, 1);
    watch_contexts(&f->engine);
    watch_contexts(&f->engine);
    g_assert_cmpuint(fake_virgl.fences->len, ==, 1);
    fake_virgl_signal(0);
    g_assert_cmpuint(g_queue_get_length(&f->engine.fences.pending), ==, 0);

    token = fixture_send_fence(f, 1, 0, 3);
    watch_contexts(&f->engine);
    g_assert_cmpuint(fake_virgl.fences->len, ==, 1);
    fake_virgl_signal(0);
    g_assert_nonnull(fake_driver_answer(&f->driver, token));

    fake_virgl.fence_result = -1;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 1*worker has ended*");
    watch_contexts(&f->engine);
    g_test_assert_expected_messages();
    g_assert_cmpuint(g_hash_table_size(fake_virgl.contexts), ==, 0);
    watch_contexts(&f->engine);
    g_assert_cmpuint(g_queue_get_length(&f->engine.fences.pending), ==, 0);
}

static void *signal_all(void *data)
{
    struct fixture *f = data;

    for (uint64_t id = 1; id <= 2000; id++)
        fence_signal_ring(&f->engine.fences, 1, 1, id, -1);
    return NULL;
}

/* Two threads use it at once; the rest is completed at the end. Each is answered exactly once. */
static void test_threads(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    GThread *thread;

    fixture_create_context(f, 1);
    thread = g_thread_new("signal", signal_all, f);
    for (uint64_t id = 1; id <= 1000; id++) {
        fixture_send_fence(f, 1, 1, id);
        fake_virgl_answer();
    }
    g_thread_join(thread);
    signal_all(f);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fixture_test("/fence/ring", test_ring);
    fixture_test("/fence/merge", test_merge);
    fixture_test("/fence/same-id", test_same_id);
    fixture_test("/fence/at-once", test_at_once);
    fixture_test("/fence/invalid-ring", test_invalid_ring);
    fixture_test("/fence/dead-worker", test_dead_worker);
    fixture_test("/fence/error-waits", test_error_waits);
    fixture_test("/fence/global", test_global);
    fixture_test("/fence/context-destroyed", test_context_destroyed);
    fixture_test("/fence/probe", test_probe);
    fixture_test("/fence/threads", test_threads);
    return g_test_run();
}
