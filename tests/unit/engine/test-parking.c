// SPDX-License-Identifier: MIT
/* A render worker that is held up stops its own context, and no other. */
#include "fixture.h"

#include "context.h"
#include "mesa_ring.h"
#include "queue.h"
#include "resource.h"
#include "watch.h"

#include <string.h>

#define HELD       1u
#define OTHER      2u
#define THIRD      3u
#define WAIT_SEQNO 80u

static const uint32_t wait_ring_seqno[] = {253, 0, 0x2c03ff80, 0x55a1, WAIT_SEQNO, 0};

/* What the guest sees of the ring of HELD. */
static uint32_t control[MESA_RING_CONTROL_WORDS];

static uint32_t send_words(struct fixture *f, uint32_t ctx_id, uint32_t flags,
                           const uint32_t *words, size_t count)
{
    struct virtio_gpu_cmd_submit cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .flags = flags, .ctx_id = ctx_id},
        .size = (uint32_t)(count * sizeof(*words)),
    };
    g_autoptr(GByteArray) request = g_byte_array_new();

    g_byte_array_append(request, (const void *)&cmd, sizeof(cmd));
    g_byte_array_append(request, (const void *)words, cmd.size);
    return fixture_send(f, request->data, request->len);
}

static uint32_t send_blob(struct fixture *f, uint32_t ctx_id, uint32_t id)
{
    struct virtio_gpu_resource_create_blob cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = ctx_id},
        .resource_id = id,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
        .blob_id = 7,
        .size = ENGINE_PAGE_SIZE,
    };

    return fixture_send(f, &cmd, sizeof(cmd));
}

static uint32_t send_map(struct fixture *f, uint32_t id)
{
    struct virtio_gpu_resource_map_blob cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
        .resource_id = id,
        .offset = id * ENGINE_PAGE_SIZE,
    };

    return fixture_send(f, &cmd, sizeof(cmd));
}

static uint32_t send_simple(struct fixture *f, uint32_t type, uint32_t ctx_id, uint32_t id)
{
    struct virtio_gpu_ctx_resource cmd = {
        .hdr = {.type = type, .ctx_id = ctx_id},
        .resource_id = id,
    };

    return fixture_send(f, &cmd, sizeof(cmd));
}

static uint32_t destroy_context(struct fixture *f, uint32_t ctx_id)
{
    return send_simple(f, VIRTIO_GPU_CMD_CTX_DESTROY, ctx_id, 0);
}

/* Two programs: HELD has a ring, OTHER has nothing. */
static void begin_context(struct fixture *f)
{
    struct virtio_gpu_resource_create_blob shm = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = HELD},
        .resource_id = MESA_RING_RESOURCE,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
        .size = MESA_RING_SIZE,
    };
    uint32_t token;

    memset(control, 0, sizeof(control));
    fake_virgl.map_content = control;
    fake_virgl.map_content_words = MESA_RING_CONTROL_WORDS;
    fixture_create_context(f, HELD);
    fixture_create_context(f, OTHER);
    g_assert_cmphex(fixture_ask(f, &shm, sizeof(shm)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    token = send_words(f, HELD, 0, mesa_create_ring, G_N_ELEMENTS(mesa_create_ring));
    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_NODATA);
    watch_contexts(&f->engine);
    fake_virgl_answer();
}

/* HELD's worker waits for its ring from here on. */
static void wait_for_ring(struct fixture *f)
{
    uint32_t token = send_words(f, HELD, 0, wait_ring_seqno, G_N_ELEMENTS(wait_ring_seqno));

    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* And is asked for memory. */
static void hold_context(struct fixture *f)
{
    wait_for_ring(f);
    g_assert_cmphex(fixture_answer_type(f, send_blob(f, HELD, 99)), ==, 0);
}

static void assert_other_is_served(struct fixture *f, uint32_t id)
{
    uint32_t fence;

    g_assert_cmphex(fixture_answer_type(f, send_blob(f, OTHER, id)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, send_map(f, id)), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    fence = fixture_send_fence(f, OTHER, 1, 1);
    fake_virgl_signal(fake_virgl.fences->len - 1);
    g_assert_cmphex(fixture_answer_type(f, fence), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* It finishes its messages. */
static void let_go(struct fixture *f)
{
    fake_virgl_answer();
    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
}

static void test_held(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t blob, map;

    begin_context(f);
    hold_context(f);
    blob = send_blob(f, HELD, 10);
    map = send_map(f, 10);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, 0);
    g_assert_cmphex(fixture_answer_type(f, map), ==, 0);
    assert_other_is_served(f, 20);

    let_go(f);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, map), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    g_assert_cmphex(fixture_answer_type(f, send_blob(f, HELD, 11)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->engine.parking.bytes, ==, 0);
}

/* The worker takes the queue's lock for such a fence, which its ring has while it submits. */
static void test_ring_fence(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t fence, blob;

    begin_context(f);
    fence = fixture_send_fence(f, HELD, 1, 1);
    blob = send_blob(f, HELD, 10);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, 0);
    assert_other_is_served(f, 20);
    let_go(f);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, fence), ==, 0);
}

/* A program that is killed while its ring compiles: its memory is returned, and then its context.
 */
static void test_killed(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const uint32_t buffers = 400;
    uint32_t first = 0, last = 0;

    begin_context(f);
    for (uint32_t i = 0; i < buffers; i++)
        fixture_create_blob(f, HELD, 100 + i, ENGINE_PAGE_SIZE);
    first = send_simple(f, VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE, HELD, MESA_RING_RESOURCE);
    send_simple(f, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0, MESA_RING_RESOURCE);
    for (uint32_t i = 0; i < buffers; i++) {
        send_simple(f, VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE, HELD, 100 + i);
        last = send_simple(f, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0, 100 + i);
    }
    g_assert_cmphex(fixture_answer_type(f, first), ==, VIRTIO_GPU_RESP_OK_NODATA);
    /* The control queue has 256 chains, and the context's end is yet to come through it. */
    g_assert_cmphex(fixture_answer_type(f, last), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
    g_assert_nonnull(resource_find(&f->engine, 100 + buffers - 1));
    g_assert_cmphex(fixture_answer_type(f, destroy_context(f, HELD)), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->engine.parking.requests.length, ==, 0);
    g_assert_null(resource_find(&f->engine, 100 + buffers - 1));
    assert_other_is_served(f, 20);
}

/* Memory that a program has not been made to leave: its worker hears of the end of each. */
static void test_unref_alone(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const uint32_t buffers = 400;

    begin_context(f);
    for (uint32_t i = 0; i < buffers; i++)
        fixture_create_blob(f, HELD, 100 + i, ENGINE_PAGE_SIZE);
    hold_context(f);
    for (uint32_t i = 0; i < buffers; i++)
        send_simple(f, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0, 100 + i);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 1); /* the blob that it is held for */
    while (f->engine.parking.requests.length)
        let_go(f);
    g_assert_null(resource_find(&f->engine, 100 + buffers - 1));
}

/* As many as a socket holds, of what a worker does at once: it may be stopped nevertheless. */
static void test_flood(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t last = 0;

    begin_context(f);
    for (int i = 0; i < 400; i++)
        last = send_words(f, HELD, 0, mesa_notify_ring, G_N_ELEMENTS(mesa_notify_ring));
    g_assert_cmphex(fixture_answer_type(f, last), ==, 0);
    assert_other_is_served(f, 20);
    while (f->engine.parking.requests.length)
        let_go(f);
    g_assert_cmphex(fixture_answer_type(f, last), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* Held by a fence of the guest's own, which is withheld when the worker dies. */
static void test_lost_while_held(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t fence, blob;

    begin_context(f);
    wait_for_ring(f);
    fence = fixture_send_fence(f, HELD, 0, 1);
    blob = send_blob(f, HELD, 10);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, 0);
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "context 1: *has ended*");
    fake_virgl_kill_worker(HELD);
    watch_lost(&f->engine);
    g_test_assert_expected_messages();
    g_assert_cmphex(fixture_answer_type(f, fence), ==, 0);
    g_assert_cmphex(fixture_answer_type(f, destroy_context(f, HELD)), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, fence), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
}

/* What Mesa sends all the time costs no message more, and nobody waits. */
static void test_quick(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const uint32_t submit_seqno[] = {251, 0, 0x2c03ff80, 0x55a1, 1, 0};
    static const uint32_t write_extra[] = {191, 0, 0x2c03ff80, 0x55a1, 0, 0, 9};

    begin_context(f);
    send_words(f, HELD, 0, mesa_notify_ring, G_N_ELEMENTS(mesa_notify_ring));
    send_words(f, HELD, 0, submit_seqno, G_N_ELEMENTS(submit_seqno));
    send_words(f, HELD, 0, write_extra, G_N_ELEMENTS(write_extra));
    /* A wait that is over is not sent. */
    fake_virgl.submitted = -1;
    control[MESA_RING_HEAD] = WAIT_SEQNO;
    send_words(f, HELD, 0, wait_ring_seqno, G_N_ELEMENTS(wait_ring_seqno));
    control[MESA_RING_HEAD] = WAIT_SEQNO + 400; /* and further */
    send_words(f, HELD, 0, wait_ring_seqno, G_N_ELEMENTS(wait_ring_seqno));
    g_assert_cmpint(fake_virgl.submitted, ==, -1);
    g_assert_cmpuint(fake_virgl.fences->len, ==, 0);
    g_assert_cmphex(fixture_answer_type(f, send_blob(f, HELD, 10)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* All else may take any time: the end of a ring, a ring that is not known, two commands at once. */
static void test_slow(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const uint32_t other_ring[] = {253, 0, 7, 0, 0, 0};
    static const uint32_t two[] = {190, 0, 0x2c03ff80, 0x55a1, 0, 0, 253, 0, 7, 0, 0, 0};
    static const uint32_t half[] = {190, 0};
    static const struct {
        const uint32_t *words;
        size_t count;
    } cases[] = {
        {other_ring, G_N_ELEMENTS(other_ring)},
        {two, G_N_ELEMENTS(two)},
        {half, G_N_ELEMENTS(half)},
        {mesa_destroy_ring, G_N_ELEMENTS(mesa_destroy_ring)},
    };

    begin_context(f);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint32_t blob;

        send_words(f, HELD, 0, cases[i].words, cases[i].count);
        blob = send_blob(f, HELD, 10 + (uint32_t)i);
        g_assert_cmphex(fixture_answer_type(f, blob), ==, 0);
        let_go(f);
        g_assert_cmphex(fixture_answer_type(f, blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
    }
}

/* One program's memory that another imports: the other waits for it, a third does not. */
static void test_shared(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t blob, attach, fence, unref;

    begin_context(f);
    fixture_create_context(f, THIRD);
    hold_context(f);
    blob = send_blob(f, HELD, 10);
    attach = send_simple(f, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, OTHER, 10);
    fence = fixture_send_fence(f, OTHER, 1, 1);
    unref = send_simple(f, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0, 10);
    g_assert_cmphex(fixture_answer_type(f, attach), ==, 0);
    g_assert_cmpuint(fake_virgl.fences->len, ==, 1);
    g_assert_cmphex(fixture_answer_type(f, send_blob(f, THIRD, 30)), ==, VIRTIO_GPU_RESP_OK_NODATA);

    let_go(f);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, attach), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, unref), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, fence), ==, 0);
    fake_virgl_signal(0);
    g_assert_cmphex(fixture_answer_type(f, fence), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(fake_virgl.attached, ==, 1);
}

/* It waits a second time before it is through the parked commands. */
static void test_held_again(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t first, wait, second;

    begin_context(f);
    hold_context(f);
    first = send_blob(f, HELD, 10);
    wait = send_words(f, HELD, 0, wait_ring_seqno, G_N_ELEMENTS(wait_ring_seqno));
    second = send_blob(f, HELD, 11);
    let_go(f);
    g_assert_cmphex(fixture_answer_type(f, first), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, wait), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, second), ==, 0);
    let_go(f);
    g_assert_cmphex(fixture_answer_type(f, second), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* Linux takes a fence as the end of all before it on its timeline. */
static void test_order(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr global = {
        .type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO,
        .flags = VIRTIO_GPU_FLAG_FENCE,
        .fence_id = 3,
    };
    uint32_t bad, plain, fenced;

    begin_context(f);
    hold_context(f);
    /* A command that fails at once, on the held context's own timeline. */
    bad = fixture_send_fence(f, HELD, 64, 1);
    plain = send_words(f, HELD, VIRTIO_GPU_FLAG_FENCE, mesa_notify_ring,
                       G_N_ELEMENTS(mesa_notify_ring));
    fenced = fixture_send(f, &global, sizeof(global));
    g_assert_cmphex(fixture_answer_type(f, bad), ==, 0);
    g_assert_cmphex(fixture_answer_type(f, plain), ==, 0);
    g_assert_cmphex(fixture_answer_type(f, fenced), ==, 0);
    global.flags = 0;
    g_assert_cmphex(fixture_ask(f, &global, sizeof(global)), ==, VIRTIO_GPU_RESP_OK_DISPLAY_INFO);

    let_go(f);
    g_assert_cmphex(fixture_answer_type(f, bad), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(fixture_answer_type(f, plain), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, fenced), ==, VIRTIO_GPU_RESP_OK_DISPLAY_INFO);
}

/* A program that is killed meanwhile is removed at once, with all commands that wait for it. */
static void test_destroyed(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t blob, map, detach, unref;

    begin_context(f);
    hold_context(f);
    blob = send_blob(f, HELD, 10);
    map = send_map(f, 10);
    detach = send_simple(f, VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE, HELD, MESA_RING_RESOURCE);
    unref = send_simple(f, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0, MESA_RING_RESOURCE);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, 0);
    g_assert_cmphex(fixture_answer_type(f, map), ==, 0);
    g_assert_cmphex(fixture_answer_type(f, destroy_context(f, HELD)), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmphex(fixture_answer_type(f, map), ==, VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    g_assert_cmphex(fixture_answer_type(f, detach), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, unref), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
    assert_other_is_served(f, 20);
}

/* So does one whose worker dies, whenever that is found out. */
static void test_worker_dies(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t notify, blob;

    begin_context(f);
    hold_context(f);
    notify = send_words(f, HELD, 0, mesa_notify_ring, G_N_ELEMENTS(mesa_notify_ring));
    blob = send_blob(f, HELD, 10);
    fake_virgl.submit_result = -1;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "context 1: *has ended*");
    let_go(f); /* as virglrenderer has it of a dead worker's fences */
    g_test_assert_expected_messages();
    g_assert_cmphex(fixture_answer_type(f, notify), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
}

static void test_reset(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    begin_context(f);
    hold_context(f);
    send_blob(f, HELD, 10);
    fixture_reset(f);
    g_assert_cmpuint(f->engine.parking.requests.length, ==, 0);
    g_assert_cmpuint(f->engine.fences.pending.length, ==, 0);
    begin_context(f);
    g_assert_cmphex(fixture_answer_type(f, send_blob(f, HELD, 10)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* A worker that was not expected to wait, and does, is found out by the second look. */
static void test_stopped(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t blob;

    begin_context(f);
    watch_contexts(&f->engine);
    fake_virgl_signal(1); /* OTHER's */
    watch_contexts(&f->engine);
    fake_virgl_signal(1);
    blob = send_blob(f, HELD, 10);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, 0);
    assert_other_is_served(f, 20);
    let_go(f);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* A probe from before does not cover what the worker was sent after it. */
static void test_probed_before(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t blob;

    begin_context(f);
    watch_contexts(&f->engine);
    fake_virgl_signal(1); /* OTHER's */
    hold_context(f);
    watch_contexts(&f->engine);
    fake_virgl_signal(2);
    blob = send_blob(f, HELD, 10);
    fake_virgl_signal(0); /* the probe */
    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, 0);
    let_go(f);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* A waiter in the guest cannot be killed, so the wait ends. A small cap makes it longer. */
static void test_given_up(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t blob;

    f->engine.info.cap = 40;
    begin_context(f);
    hold_context(f);
    blob = send_blob(f, HELD, 10);
    watch_contexts(&f->engine);
    fake_virgl_signal(1); /* OTHER's */
    g_assert_true(context_alive(&f->engine, HELD));
    context_find(&f->engine, HELD)->held_since -= 24 * G_TIME_SPAN_MINUTE;
    watch_contexts(&f->engine);
    g_assert_true(context_alive(&f->engine, HELD));
    context_find(&f->engine, HELD)->held_since -= G_TIME_SPAN_MINUTE;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "context 1: *25 minutes*");
    watch_contexts(&f->engine);
    g_test_assert_expected_messages();
    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
    g_assert_cmphex(fixture_answer_type(f, blob), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_true(context_alive(&f->engine, OTHER));
}

/* Parked data is limited, and whoever fills it harms nobody else. */
static void test_full(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const size_t words = (15u << 20) / sizeof(uint32_t);
    g_autofree uint32_t *large = g_new0(uint32_t, words);
    uint32_t last = 0;

    begin_context(f);
    hold_context(f);
    for (int i = 0; i < 4; i++)
        last = send_words(f, HELD, 0, large, words);
    g_assert_cmphex(fixture_answer_type(f, last), ==, 0);
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "context 1: *it is ended");
    last = send_words(f, HELD, 0, large, words);
    g_test_assert_expected_messages();
    g_assert_cmphex(fixture_answer_type(f, last), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmpuint(f->engine.parking.bytes, ==, 0);
    assert_other_is_served(f, 20);
}

/* What is refused unseen is so in its turn. */
static void test_truncated(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autofree uint8_t *huge = g_malloc0(ENGINE_MAX_REQUEST + 1);
    struct virtio_gpu_ctrl_hdr hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = HELD};
    uint32_t token;

    begin_context(f);
    hold_context(f);
    memcpy(huge, &hdr, sizeof(hdr));
    token = fixture_send(f, huge, ENGINE_MAX_REQUEST + 1);
    g_assert_cmphex(fixture_answer_type(f, token), ==, 0);
    let_go(f);
    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fixture_test("/parking/held", test_held);
    fixture_test("/parking/ring-fence", test_ring_fence);
    fixture_test("/parking/killed", test_killed);
    fixture_test("/parking/unref-alone", test_unref_alone);
    fixture_test("/parking/flood", test_flood);
    fixture_test("/parking/lost-while-held", test_lost_while_held);
    fixture_test("/parking/quick", test_quick);
    fixture_test("/parking/slow", test_slow);
    fixture_test("/parking/shared", test_shared);
    fixture_test("/parking/held-again", test_held_again);
    fixture_test("/parking/order", test_order);
    fixture_test("/parking/destroyed", test_destroyed);
    fixture_test("/parking/worker-dies", test_worker_dies);
    fixture_test("/parking/reset", test_reset);
    fixture_test("/parking/stopped", test_stopped);
    fixture_test("/parking/probed-before", test_probed_before);
    fixture_test("/parking/given-up", test_given_up);
    fixture_test("/parking/full", test_full);
    fixture_test("/parking/truncated", test_truncated);
    return g_test_run();
}
