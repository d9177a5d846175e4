// SPDX-License-Identifier: MIT
/* A render worker that sleeps with commands in a ring is woken; nobody else is. */
#include "fixture.h"

#include "context.h"
#include "context_kind.h"
#include "mesa_ring.h"
#include "venus_rings.h"
#include "watch.h"

#include <string.h>

#define IDLE 1u

static const struct venus_ring ring_at_start = {.head = 0, .tail = 0x40, .status = 0x80};

static bool worker_sleeps(uint32_t head, uint32_t tail, uint32_t status)
{
    uint32_t memory[MESA_RING_CONTROL_WORDS] = {0};

    memory[MESA_RING_HEAD] = head;
    memory[MESA_RING_TAIL] = tail;
    memory[MESA_RING_STATUS] = status;
    return venus_ring_sleeps(&ring_at_start, memory, sizeof(memory));
}

static void test_sleeps(void)
{
    g_assert_true(worker_sleeps(80, 160, IDLE));
    g_assert_true(worker_sleeps(0xffffffb0, 0, IDLE | 4)); /* it wraps; ALIVE is ignored */
    g_assert_false(worker_sleeps(80, 80, IDLE));
    g_assert_false(worker_sleeps(80, 160, 0));
}

/* What lies outside of the resource, or in the middle of a number, is not read. */
static void test_bounds(void)
{
    static const uint64_t bad[] = {2, 0x84, 0x1000, UINT64_MAX - 3, UINT64_MAX};
    uint32_t *memory = g_new0(uint32_t, MESA_RING_CONTROL_WORDS);
    size_t size = MESA_RING_CONTROL_WORDS * sizeof(*memory);

    memory[MESA_RING_TAIL] = 1;
    memory[MESA_RING_STATUS] = IDLE;
    g_assert_true(venus_ring_sleeps(&ring_at_start, memory, size));
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct venus_ring ring = ring_at_start;

        ring.tail = bad[i];
        g_assert_false(venus_ring_sleeps(&ring, memory, size));
    }
    g_assert_false(venus_ring_sleeps(&ring_at_start, memory, 0));
    g_assert_false(venus_ring_sleeps(&ring_at_start, memory, 3));
    g_free(memory);
}

static void test_learn(void)
{
    struct venus_rings rings = {0};

    venus_rings_learn(&rings, mesa_create_ring, G_N_ELEMENTS(mesa_create_ring));
    g_assert_cmpuint(rings.count, ==, 1);
    g_assert_cmphex(rings.rings[0].id, ==, MESA_RING_ID);
    g_assert_cmpuint(rings.rings[0].resource, ==, MESA_RING_RESOURCE);
    g_assert_cmphex(rings.rings[0].head, ==, 0);
    g_assert_cmphex(rings.rings[0].tail, ==, 0x40);
    g_assert_cmphex(rings.rings[0].status, ==, 0x80);

    venus_rings_learn(&rings, mesa_notify_ring, G_N_ELEMENTS(mesa_notify_ring));
    g_assert_cmpuint(rings.count, ==, 1);
    venus_rings_learn(&rings, mesa_create_ring, G_N_ELEMENTS(mesa_create_ring));
    g_assert_cmpuint(rings.count, ==, 1);
    venus_rings_learn(&rings, mesa_destroy_ring, G_N_ELEMENTS(mesa_destroy_ring));
    g_assert_cmpuint(rings.count, ==, 0);
    venus_rings_clear(&rings);
}

/* Cut anywhere, it is not a ring; with an unknown structure in the chain it is not one either. */
static void test_learn_bad(void)
{
    /* All behind status is not read. */
    const size_t needed = G_N_ELEMENTS(mesa_create_ring) - 8;
    uint32_t command[G_N_ELEMENTS(mesa_create_ring)];
    struct venus_rings rings = {0};

    for (size_t words = 0; words < needed; words++) {
        g_autofree uint32_t *cut = g_memdup2(mesa_create_ring, words * sizeof(uint32_t));

        venus_rings_learn(&rings, cut, words);
        g_assert_cmpuint(rings.count, ==, 0);
    }
    memcpy(command, mesa_create_ring, sizeof(command));
    command[9] = 1000384001;
    venus_rings_learn(&rings, command, G_N_ELEMENTS(command));
    g_assert_cmpuint(rings.count, ==, 0);
}

/* Each is a thread of the worker: there is a limit, and what is destroyed does not count. */
static void test_many(void)
{
    uint32_t command[G_N_ELEMENTS(mesa_create_ring)];
    uint32_t destroy[G_N_ELEMENTS(mesa_destroy_ring)];
    struct venus_rings rings = {0};

    memcpy(command, mesa_create_ring, sizeof(command));
    memcpy(destroy, mesa_destroy_ring, sizeof(destroy));
    for (uint32_t id = 0; id < VENUS_RINGS_MAX; id++) {
        command[2] = id;
        g_assert_true(venus_rings_learn(&rings, command, G_N_ELEMENTS(command)));
    }
    command[2] = VENUS_RINGS_MAX;
    g_assert_false(venus_rings_learn(&rings, command, G_N_ELEMENTS(command)));
    g_assert_cmpuint(rings.count, ==, VENUS_RINGS_MAX);
    destroy[2] = 7;
    g_assert_true(venus_rings_learn(&rings, destroy, G_N_ELEMENTS(destroy)));
    g_assert_true(venus_rings_learn(&rings, command, G_N_ELEMENTS(command)));
    g_assert_cmpuint(rings.count, ==, VENUS_RINGS_MAX);
    venus_rings_clear(&rings);
}

static void assert_patched(uint32_t timeout, size_t words, uint32_t expected)
{
    uint32_t command[G_N_ELEMENTS(mesa_create_ring)];
    uint32_t before[G_N_ELEMENTS(mesa_create_ring)];

    memcpy(command, mesa_create_ring, sizeof(command));
    command[MESA_RING_IDLE_TIMEOUT] = timeout;
    memcpy(before, command, sizeof(before));
    venus_rings_patch(command, words);
    g_assert_cmpuint(command[MESA_RING_IDLE_TIMEOUT], ==, expected);
    command[MESA_RING_IDLE_TIMEOUT] = timeout;
    g_assert_cmpmem(command, sizeof(command), before, sizeof(before));
}

/* A ring sleeps later than Mesa asks for; nothing else is changed, and nothing but whole commands.
 */
static void test_patch(void)
{
    const size_t all = G_N_ELEMENTS(mesa_create_ring);
    uint32_t other[G_N_ELEMENTS(mesa_create_ring)];

    assert_patched(1000000, all, 20000000);
    assert_patched(0, all, 20000000);
    assert_patched(30000000, all, 30000000);
    for (size_t words = 0; words < MESA_RING_IDLE_TIMEOUT + 8; words++)
        assert_patched(1000000, words, 1000000);
    memcpy(other, mesa_create_ring, sizeof(other));
    other[0] = mesa_destroy_ring[0];
    venus_rings_patch(other, all);
    g_assert_cmpuint(other[MESA_RING_IDLE_TIMEOUT], ==, 1000000);
    other[0] = mesa_create_ring[0];
    other[MESA_RING_IDLE_TIMEOUT + 1] = 1; /* 4 s and more */
    venus_rings_patch(other, all);
    g_assert_cmpuint(other[MESA_RING_IDLE_TIMEOUT], ==, 1000000);
}

static void submit_words(struct fixture *f, const uint32_t *words, size_t count)
{
    struct virtio_gpu_cmd_submit cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1},
        .size = (uint32_t)(count * sizeof(*words)),
    };
    g_autoptr(GByteArray) request = g_byte_array_new();

    g_byte_array_append(request, (const void *)&cmd, sizeof(cmd));
    g_byte_array_append(request, (const void *)words, cmd.size);
    g_assert_cmphex(fixture_ask(f, request->data, request->len), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* The dwords that a worker gets at the next look, which answers all that it is asked. */
static int look_at_ring(struct fixture *f, uint32_t tail, uint32_t status)
{
    uint32_t control[MESA_RING_CONTROL_WORDS] = {0};

    control[MESA_RING_TAIL] = tail;
    control[MESA_RING_STATUS] = status;
    fake_virgl.map_content = control;
    fake_virgl.map_content_words = MESA_RING_CONTROL_WORDS;
    fake_virgl.submitted = -1;
    watch_contexts(&f->engine);
    fake_virgl.map_content = NULL;
    while (fake_virgl.fences->len)
        fake_virgl_signal(0);
    return fake_virgl.submitted;
}

static void assert_rest(struct fixture *f, uint32_t tail, uint32_t status, bool rest)
{
    uint32_t control[MESA_RING_CONTROL_WORDS] = {0};
    struct context *context = context_find(&f->engine, 1);

    control[MESA_RING_TAIL] = tail;
    control[MESA_RING_STATUS] = status;
    fake_virgl.map_content = control;
    fake_virgl.map_content_words = MESA_RING_CONTROL_WORDS;
    g_assert_cmpint(context->kind->rest(&f->engine, context), ==, rest);
    if (rest)
        g_assert_true(watch_contexts(&f->engine));
    fake_virgl.map_content = NULL;
    while (fake_virgl.fences->len)
        fake_virgl_signal(0);
}

static void test_context(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    GLogLevelFlags before =
        g_log_set_fatal_mask(G_LOG_DOMAIN, G_LOG_LEVEL_MESSAGE | G_LOG_FATAL_MASK);
    struct virtio_gpu_resource_create_blob shm = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = 1},
        .resource_id = MESA_RING_RESOURCE,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
        .size = MESA_RING_SIZE,
    };

    fixture_create_context(f, 1);
    submit_words(f, mesa_create_ring, G_N_ELEMENTS(mesa_create_ring));
    g_assert_cmpuint(fake_virgl.submitted_words[MESA_RING_IDLE_TIMEOUT], ==, 20000000);
    g_assert_cmpint(look_at_ring(f, 80, IDLE), ==, -1); /* there is no such resource */
    g_assert_cmphex(fixture_ask(f, &shm, sizeof(shm)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpint(look_at_ring(f, 80, 0), ==, -1);
    g_assert_cmpint(look_at_ring(f, 0, IDLE), ==, -1);
    assert_rest(f, 0, IDLE, true);
    assert_rest(f, 80, IDLE, false);
    assert_rest(f, 0, 0, false);

    g_test_expect_message(G_LOG_DOMAIN, G_LOG_LEVEL_MESSAGE, "context 1: *woken");
    g_assert_cmpint(look_at_ring(f, 80, IDLE), ==, VENUS_NOTIFY_WORDS);
    g_test_assert_expected_messages();
    g_assert_cmpmem(fake_virgl.submitted_words, sizeof(mesa_notify_ring), mesa_notify_ring,
                    sizeof(mesa_notify_ring));
    /* Woken again, and not logged again: that would be fatal here. */
    g_assert_cmpint(look_at_ring(f, 80, IDLE), ==, VENUS_NOTIFY_WORDS);

    submit_words(f, mesa_destroy_ring, G_N_ELEMENTS(mesa_destroy_ring));
    g_assert_cmpint(look_at_ring(f, 80, IDLE), ==, -1);
    g_log_set_fatal_mask(G_LOG_DOMAIN, before);
}

/* A program that makes ring after ring is ended, and no other. */
static void test_limit(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct {
        struct virtio_gpu_cmd_submit cmd;
        uint32_t words[G_N_ELEMENTS(mesa_create_ring)];
    } request = {.cmd = {.hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1},
                         .size = sizeof(mesa_create_ring)}};

    fixture_create_context(f, 1);
    fixture_create_context(f, 2);
    fake_virgl.signal_at_once = true;
    memcpy(request.words, mesa_create_ring, sizeof(mesa_create_ring));
    for (uint32_t id = 0; id < VENUS_RINGS_MAX; id++) {
        request.words[2] = id;
        g_assert_cmphex(fixture_ask(f, &request, sizeof(request)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    }
    request.words[2]++;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "context 1: *1024 rings*");
    g_assert_cmphex(fixture_ask(f, &request, sizeof(request)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_test_assert_expected_messages();
    g_assert_false(context_alive(&f->engine, 1));
    g_assert_true(context_alive(&f->engine, 2));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/venus-rings/sleeps", test_sleeps);
    g_test_add_func("/venus-rings/bounds", test_bounds);
    g_test_add_func("/venus-rings/learn", test_learn);
    g_test_add_func("/venus-rings/learn-bad", test_learn_bad);
    g_test_add_func("/venus-rings/many", test_many);
    g_test_add_func("/venus-rings/patch", test_patch);
    fixture_test("/venus-rings/context", test_context);
    fixture_test("/venus-rings/limit", test_limit);
    return g_test_run();
}
