// SPDX-License-Identifier: MIT
/*
 * A render worker dies. virglrenderer reports its fences as done; the guest must not hear so. Its
 * rings tell it, and its fences wait until it destroys the context.
 */
#include "fixture.h"

#include "context.h"
#include "loop.h"
#include "mesa_ring.h"
#include "watch.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOST  1u
#define OTHER 2u
#define FATAL 2u
#define RING  1u

/* Of a context, in a resource that it names. */
static void make_ring(struct fixture *f, uint32_t ctx_id)
{
    struct {
        struct virtio_gpu_cmd_submit cmd;
        uint32_t words[G_N_ELEMENTS(mesa_create_ring)];
    } ring = {.cmd = {.hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = ctx_id},
                      .size = sizeof(mesa_create_ring)}};

    memcpy(ring.words, mesa_create_ring, sizeof(mesa_create_ring));
    g_assert_cmphex(fixture_ask(f, &ring, sizeof(ring)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

static void make_context_with_ring(struct fixture *f)
{
    struct virtio_gpu_resource_create_blob shm = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = LOST},
        .resource_id = MESA_RING_RESOURCE,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
        .size = MESA_RING_SIZE,
    };
    struct virtio_gpu_resource_map_blob map = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
        .resource_id = MESA_RING_RESOURCE,
    };

    fixture_create_context(f, LOST);
    fixture_create_context(f, OTHER);
    g_assert_cmphex(fixture_ask(f, &shm, sizeof(shm)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &map, sizeof(map)), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    make_ring(f, LOST);
}

/* As the guest sees it. */
static uint32_t ring_status(struct fixture *f)
{
    uint64_t offset = 0;
    const struct fake_range *range = g_hash_table_lookup(f->driver.published, &offset);

    return ((const uint32_t *)range->addr)[MESA_RING_STATUS];
}

static void assert_answer(struct fixture *f, uint32_t token, uint32_t type)
{
    g_assert_cmphex(fixture_answer_type(f, token), ==, type);
}

static void lose_worker(struct fixture *f)
{
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 1*worker has ended*");
    fake_virgl_kill_worker(LOST);
    watch_lost(&f->engine);
    g_test_assert_expected_messages();
}

static void lose_other(struct fixture *f)
{
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 2*worker has ended*");
    fake_virgl_kill_worker(OTHER);
    watch_lost(&f->engine);
    g_test_assert_expected_messages();
}

static void destroy_context(struct fixture *f)
{
    struct virtio_gpu_ctx_destroy cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = LOST},
    };

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

static void test_fences(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t before, others, after;

    make_context_with_ring(f);
    before = fixture_send_fence(f, LOST, RING, 1);
    others = fixture_send_fence(f, OTHER, RING, 2);
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 1*worker has ended*");
    fake_virgl_kill_worker(LOST);
    assert_answer(f, before, 0);
    g_assert_cmphex(ring_status(f), ==, 0);
    watch_lost(&f->engine);
    g_test_assert_expected_messages();
    g_assert_cmphex(ring_status(f), ==, FATAL);
    g_assert_cmpuint(g_hash_table_size(fake_virgl.contexts), ==, 1);

    after = fixture_send_fence(f, LOST, RING, 3);
    fake_virgl_signal(0);
    assert_answer(f, others, VIRTIO_GPU_RESP_OK_NODATA);
    assert_answer(f, before, 0);
    assert_answer(f, after, 0);
    destroy_context(f);
    assert_answer(f, before, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    assert_answer(f, after, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmpuint(f->engine.fences.withheld, ==, 0);
}

/* A program names another's memory as its ring. */
static void test_not_its_memory(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    make_context_with_ring(f);
    make_ring(f, OTHER);
    lose_other(f);
    g_assert_cmphex(ring_status(f), ==, 0);
    lose_worker(f);
    g_assert_cmphex(ring_status(f), ==, FATAL);
}

/* The memory's program has ended, another one still shows it, and a third has the number. */
static void test_number_again(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    make_context_with_ring(f);
    destroy_context(f);
    fixture_create_context(f, LOST);
    make_ring(f, LOST);
    lose_worker(f);
    g_assert_cmphex(ring_status(f), ==, 0);
}

/* What is done before the worker dies is done. */
static void test_done_before(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t done, pending;

    make_context_with_ring(f);
    done = fixture_send_fence(f, LOST, RING, 1);
    pending = fixture_send_fence(f, LOST, RING, 2);
    fake_virgl_signal(0);
    lose_worker(f);
    assert_answer(f, done, VIRTIO_GPU_RESP_OK_NODATA);
    assert_answer(f, pending, 0);
}

/* The context is destroyed before anybody has seen that it is lost. */
static void test_destroyed_first(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t fence;

    make_context_with_ring(f);
    fence = fixture_send_fence(f, LOST, RING, 1);
    fake_virgl_kill_worker(LOST);
    destroy_context(f);
    watch_lost(&f->engine);
    assert_answer(f, fence, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    fixture_create_context(f, LOST);
    watch_lost(&f->engine);
    g_assert_true(context_alive(&f->engine, LOST));
}

/* A waiter that cannot be killed waits for a minute. */
static void test_minute(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t fence;

    make_context_with_ring(f);
    fence = fixture_send_fence(f, LOST, RING, 1);
    lose_worker(f);
    context_find(&f->engine, LOST)->lost_since -= 59 * G_TIME_SPAN_SECOND;
    watch_contexts(&f->engine);
    assert_answer(f, fence, 0);
    context_find(&f->engine, LOST)->lost_since -= G_TIME_SPAN_SECOND;
    watch_contexts(&f->engine);
    assert_answer(f, fence, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    fence = fixture_send_fence(f, LOST, RING, 2);
    assert_answer(f, fence, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
}

/* Each takes room of the control queue, which other programs need, too. */
static void test_room(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t first, last;

    make_context_with_ring(f);
    lose_worker(f);
    first = fixture_send_fence(f, LOST, RING, 1);
    for (uint32_t i = 1; i < FENCE_MAX_WITHHELD; i++)
        fixture_send_fence(f, LOST, RING, 1 + i);
    assert_answer(f, first, 0);
    last = fixture_send_fence(f, LOST, RING, 1000);
    assert_answer(f, first, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    assert_answer(f, last, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
}

static void test_too_many_pending(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    make_context_with_ring(f);
    for (uint32_t i = 0; i <= FENCE_MAX_WITHHELD; i++) {
        fixture_send_fence(f, LOST, RING, 1 + i);
        fake_virgl_answer();
    }
    lose_worker(f);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
}

static void test_reset(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    make_context_with_ring(f);
    fixture_send_fence(f, LOST, RING, 1);
    lose_worker(f);
    fixture_reset(f);
    g_assert_cmpuint(f->engine.fences.withheld, ==, 0);
    g_assert_cmpuint(g_hash_table_size(f->engine.lifelines.connections), ==, 0);
    fixture_create_context(f, LOST);
}

/* One whose end could not be noticed: its fences would count as done. */
static void test_not_watched(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_create cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = LOST},
        .context_init = VIRTIO_GPU_CAPSET_VENUS,
    };
    int lifelines = f->engine.lifelines.fd;

    f->engine.lifelines.fd = -1;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 1*watched*");
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    g_test_assert_expected_messages();
    f->engine.lifelines.fd = lifelines;

    fake_virgl.no_connection = true;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 1*could not create*");
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    g_test_assert_expected_messages();
    g_assert_cmpuint(g_hash_table_size(fake_virgl.contexts), ==, 0);
    fake_virgl.no_connection = false;
    fixture_create_context(f, LOST);
}

/* Checks that had ended, because all workers rested, begin again: answers are due in a minute. */
static void test_checked_again(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    make_context_with_ring(f);
    fixture_send_fence(f, LOST, RING, 1);
    f->engine.rests = 2;
    lose_worker(f);
    g_assert_cmpuint(f->engine.rests, ==, 0);
}

#define ROUNDS 100
#define FENCES 50

static void *kill_worker(void *data G_GNUC_UNUSED)
{
    fake_virgl_kill_worker(LOST);
    return NULL;
}

static void lose_meanwhile(struct fixture *f)
{
    struct pollfd cut = {.fd = f->engine.lifelines.fd, .events = POLLIN};
    GThread *thread;

    thread = g_thread_new("killer", kill_worker, NULL);
    g_assert_cmpint(poll(&cut, 1, -1), ==, 1);
    watch_lost(&f->engine);
    g_thread_join(thread);
}

static void count_line(const char *domain G_GNUC_UNUSED, GLogLevelFlags level G_GNUC_UNUSED,
                       const char *message, void *lines)
{
    g_assert_nonnull(strstr(message, "worker has ended"));
    ++*(unsigned int *)lines;
}

static void assert_answers(struct fixture *f, const uint32_t *tokens, uint32_t type)
{
    for (uint32_t i = 0; i < FENCES; i++)
        assert_answer(f, tokens[i], type);
}

/*
 * The main thread sees the end while another one still reports the fences. A guest can have that as
 * often as it likes, so it is not written each time.
 */
static void test_meanwhile(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t tokens[FENCES];
    unsigned int lines = 0;
    guint handler = g_log_set_handler("vgpu-engine", G_LOG_LEVEL_WARNING | G_LOG_FLAG_FATAL,
                                      count_line, &lines);
    GLogLevelFlags fatal = g_log_set_always_fatal(G_LOG_FATAL_MASK);

    for (unsigned int round = 0; round < ROUNDS; round++) {
        fixture_create_context(f, LOST);
        for (uint32_t i = 0; i < FENCES; i++)
            tokens[i] = fixture_send_fence(f, LOST, RING, 1 + i);
        lose_meanwhile(f);
        assert_answers(f, tokens, 0);
        destroy_context(f);
        assert_answers(f, tokens, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    }
    g_log_set_always_fatal(fatal);
    g_log_remove_handler("vgpu-engine", handler);
    g_assert_cmpuint(lines, >, 0);
    g_assert_cmpuint(lines, <=, 50);
}

/* The driver ends when its file is readable. */
static int end_of_driver(struct fake_driver *driver, struct vgpu_engine_event *event G_GNUC_UNUSED)
{
    struct pollfd fd = {.fd = driver->base.fd, .events = POLLIN};

    return poll(&fd, 1, 0) > 0 ? -EIO : -EAGAIN;
}

static void *kill_and_end(void *data)
{
    struct fixture *f = data;
    uint64_t one = 1;

    g_usleep(20000); /* likely asleep by now */
    fake_virgl_kill_worker(LOST);
    for (int i = 0; i < 20000 && !(ring_status(f) & FATAL); i++)
        g_usleep(1000);
    g_assert_cmphex(ring_status(f), ==, FATAL);
    g_assert_cmpint(write(f->driver.base.fd, &one, sizeof(one)), ==, sizeof(one));
    return NULL;
}

/* The loop hears of it without any event of the driver's. */
static void test_loop(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GError) error = NULL;
    GThread *thread;

    make_context_with_ring(f);
    f->driver.next_event = end_of_driver;
    f->driver.base.fd = eventfd(0, EFD_CLOEXEC);
    g_assert_true(loop_setup(NULL));
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 1*worker has ended*");
    thread = g_thread_new("killer", kill_and_end, f);
    g_assert_false(loop_run(&f->engine, &error));
    g_thread_join(thread);
    g_test_assert_expected_messages();
    close(f->driver.base.fd);
    f->driver.base.fd = -1;
}

/* An engine that ends marks all contexts. */
static void test_engine_ends(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GError) error = NULL;

    make_context_with_ring(f);
    f->driver.next_event = end_of_driver;
    f->driver.base.fd = eventfd(1, EFD_CLOEXEC);
    g_assert_true(loop_setup(NULL));
    g_assert_false(loop_run(&f->engine, &error));
    g_assert_cmphex(ring_status(f), ==, FATAL);
    close(f->driver.base.fd);
    f->driver.base.fd = -1;
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fixture_test("/lost/fences", test_fences);
    fixture_test("/lost/not-its-memory", test_not_its_memory);
    fixture_test("/lost/number-again", test_number_again);
    fixture_test("/lost/done-before", test_done_before);
    fixture_test("/lost/destroyed-first", test_destroyed_first);
    fixture_test("/lost/minute", test_minute);
    fixture_test("/lost/room", test_room);
    fixture_test("/lost/too-many-pending", test_too_many_pending);
    fixture_test("/lost/reset", test_reset);
    fixture_test("/lost/loop", test_loop);
    fixture_test("/lost/engine-ends", test_engine_ends);
    fixture_test("/lost/not-watched", test_not_watched);
    fixture_test("/lost/checked-again", test_checked_again);
    fixture_test("/lost/meanwhile", test_meanwhile); /* last: it uses up the lines */
    return g_test_run();
}
