// SPDX-License-Identifier: MIT
/* The protocol: Mesa's messages are answered as it expects; invalid messages end the session. */
#include "fixture.h"

#include "guard_limits.h"
#include "keeper_wire.h"
#include "mesa_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_gpu.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOB_SIZE 4096u

static void test_handshake(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t answer[41];

    client_name(f->client);
    client_send(f->client, VTEST_PING_PROTOCOL_VERSION);
    client_send(f->client, VTEST_RESOURCE_BUSY_WAIT, 0, 0);
    client_send(f->client, VTEST_PROTOCOL_VERSION_COMMAND, 4);
    client_send(f->client, VTEST_GET_PARAM, VTEST_PARAM_MAX_TIMELINE_COUNT);
    client_send(f->client, VTEST_GET_PARAM, 99);
    client_send(f->client, VTEST_GET_CAPSET, VIRTIO_GPU_CAPSET_VENUS, 0);
    client_send(f->client, VTEST_GET_CAPSET, VIRTIO_GPU_CAPSET_VIRGL2, 0);
    client_send(f->client, VTEST_CONTEXT_INIT, VIRTIO_GPU_CAPSET_VENUS);
    fixture_run(f);

    client_answer(f->client, VTEST_PING_PROTOCOL_VERSION, NULL, 0);
    client_answer(f->client, VTEST_RESOURCE_BUSY_WAIT, answer, 1);
    g_assert_cmpuint(answer[0], ==, 0);
    client_answer(f->client, VTEST_PROTOCOL_VERSION_COMMAND, answer, 1);
    g_assert_cmpuint(answer[0], ==, 3);
    client_answer(f->client, VTEST_GET_PARAM, answer, 2);
    g_assert_cmpuint(answer[0], ==, 1);
    g_assert_cmpuint(answer[1], ==, 64);
    client_answer(f->client, VTEST_GET_PARAM, answer, 2);
    g_assert_cmpuint(answer[0], ==, 0);
    client_answer(f->client, VTEST_GET_CAPSET, answer, 41);
    g_assert_cmpuint(answer[0], ==, 1);
    g_assert_cmphex(answer[40], ==, 0xc5c5c5c5);
    client_answer(f->client, VTEST_GET_CAPSET, answer, 1);
    g_assert_cmpuint(answer[0], ==, 0);
    g_assert_true(f->session.context);
    g_assert_cmpstr(f->session.name, ==, "test");
}

static void test_old_version(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t version;

    client_name(f->client);
    client_send(f->client, VTEST_PROTOCOL_VERSION_COMMAND, 2);
    fixture_run(f);
    client_answer(f->client, VTEST_PROTOCOL_VERSION_COMMAND, &version, 1);
    g_assert_cmpuint(version, ==, 2);
}

/* What comes into the journal with it cannot be more than a word. */
static void test_name(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const char name[] = "a\033[31m b\nand so on, which is much longer than a name may be";
    const uint32_t header[] = {sizeof(name), VTEST_CREATE_RENDERER};

    client_write(f->client, header, sizeof(header));
    client_write(f->client, name, sizeof(name));
    fixture_run(f);
    g_assert_cmpstr(f->session.name, ==, "a?[31m?b?and?so?on,?which?is?mu");
}

static void test_blobs(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id;
    struct stat st;
    int fd;

    client_hello(f->client);
    for (int i = 0; i < 2; i++)
        client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, BLOB_SIZE, 0, 0, 0);
    client_send(f->client, VTEST_RESOURCE_UNREF, 1);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, BLOB_SIZE, 0, 7, 0);
    fixture_run(f);

    for (uint32_t i = 0; i < 3; i++) {
        client_answer(f->client, VTEST_RESOURCE_CREATE_BLOB, &id, 1);
        fd = client_answer_fd(f->client);
        g_assert_no_errno(fstat(fd, &st));
        g_assert_cmpint(st.st_size, ==, BLOB_SIZE);
        close(fd);
        /* The number that is free again. */
        g_assert_cmpuint(id, ==, i == 2 ? 1 : i + 1);
    }
    g_assert_cmpuint(f->session.shm_bytes, ==, BLOB_SIZE);
    g_assert_cmpuint(g_hash_table_size(fake_virgl.resources), ==, 2);
}

/* Refused, but not dropped: a number and a descriptor that Mesa takes for a want of memory. */
static void assert_refused(struct fixture *f)
{
    uint32_t id;
    int fd;

    fixture_run(f);
    client_answer(f->client, VTEST_RESOURCE_CREATE_BLOB, &id, 1);
    fd = client_answer_fd(f->client);
    g_assert_cmpuint(id, ==, 0);
    g_assert_true(mmap(NULL, BLOB_SIZE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
    g_assert_cmpint(errno, ==, ENODEV);
    close(fd);
    g_assert_cmpuint(g_hash_table_size(fake_virgl.resources), ==, 0);
    g_assert_cmpuint(f->session.shm_bytes, ==, 0);
}

static void test_blob_refused(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    fake_virgl.blob_result = -ENOMEM;
    client_hello(f->client);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, BLOB_SIZE, 0, 7, 0);
    client_send(f->client, VTEST_RESOURCE_UNREF, 0);
    assert_refused(f);
}

static void test_blob_opaque(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    fake_virgl.export_opaque = true;
    client_hello(f->client);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, BLOB_SIZE, 0, 7, 0);
    assert_refused(f);
}

/* One that gives the same answer to each question, and to @questions of them. */
static void keeper_says(struct fixture *f, const char *answers, gsize questions, int *other)
{
    int ends[2];

    g_assert_no_errno(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    for (gsize i = 0; i < questions; i++)
        g_assert_cmpint(send(ends[1], &answers[i], 1, 0), ==, 1);
    f->session.keeper.connection = ends[0];
    *other = ends[1];
}

static void keeper_ends(struct fixture *f, int other)
{
    close(f->session.keeper.connection);
    close(other);
}

/* Memory @number, by @call with its descriptor. */
static void assert_kept(int keeper, uint32_t call, uint32_t number)
{
    struct keeper_packet packet;
    int fd;

    g_assert_cmpint(keeper_receive(keeper, &packet, &fd), ==, KEEPER_PACKET);
    g_assert_cmpuint(packet.call, ==, call);
    g_assert_cmpuint(packet.id, ==, number);
    g_assert_cmpint(fd, >=, 0);
    close(fd);
}

/* Memory @number, but only when the worker has answered what it was sent last, a fence on ring 0.
 */
static void assert_released_in_time(int keeper, uint32_t number)
{
    struct keeper_packet packet;
    int fd;

    g_assert_cmpint(keeper_receive(keeper, &packet, &fd), ==, KEEPER_NOTHING);
    g_assert_cmpuint(g_array_index(fake_virgl.fences, struct fake_fence, 0).ring_idx, ==, 0);
    fake_virgl_signal(0);
    g_assert_cmpint(keeper_receive(keeper, &packet, &fd), ==, KEEPER_PACKET);
    g_assert_cmpuint(packet.call, ==, KEEPER_RELEASE);
    g_assert_cmpuint(packet.id, ==, number);
}

static void test_kept(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct keeper_packet packet;
    int keeper, fd;

    /* The second has the first one's number of the client's, and another of the keeper's. */
    keeper_says(f, "\1\1", 2, &keeper);
    client_hello(f->client);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, BLOB_SIZE, 0, 7, 0);
    client_send(f->client, VTEST_RESOURCE_UNREF, 1);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, BLOB_SIZE, 0, 7, 0);
    fixture_run(f);
    assert_kept(keeper, KEEPER_KEEP, 1);
    assert_kept(keeper, KEEPER_KEEP, 2);
    assert_released_in_time(keeper, 1);
    g_assert_cmpint(keeper_receive(keeper, &packet, &fd), ==, KEEPER_NOTHING);
    keeper_ends(f, keeper);
}

/* Plain shared memory, too. */
static void test_kept_shm(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    int keeper;

    keeper_says(f, "\1", 1, &keeper);
    fake_virgl.export_shm = true;
    client_hello(f->client);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, BLOB_SIZE, 0, 0, 0);
    client_send(f->client, VTEST_RESOURCE_UNREF, 1);
    fixture_run(f);
    assert_kept(keeper, KEEPER_KEEP_SHM, 1);
    assert_released_in_time(keeper, 1);
    keeper_ends(f, keeper);
}

static void test_not_kept(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    int keeper;

    keeper_says(f, "\0", 1, &keeper);
    client_hello(f->client);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, BLOB_SIZE, 0, 7, 0);
    assert_refused(f);
    keeper_ends(f, keeper);
}

static void test_keeper_gone(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    int keeper;

    keeper_says(f, "", 0, &keeper);
    shutdown(keeper, SHUT_RDWR);
    client_hello(f->client);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, BLOB_SIZE, 0, 7, 0);
    fixture_run_dropped(f, "*keeper has ended");
    keeper_ends(f, keeper);
}

static void test_shm_limit(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const uint64_t size = GUARD_SHM_BYTES_MAX + 1;

    client_hello(f->client);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, (uint32_t)size, (uint32_t)(size >> 32),
                0, 0);
    assert_refused(f);
}

/* count, one batch, a command of two words, an entry of a sync. */
#define SUBMIT(flags, cmd_offset, cmd_size, sync_offset, sync_count, ring)                         \
    1, flags, cmd_offset, cmd_size, sync_offset, sync_count, ring, 0xaa, 0xbb, 1, 5, 0

static void test_submit(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t answer[2];
    int fd;

    client_hello(f->client);
    client_send(f->client, VTEST_SYNC_CREATE, 0, 0);
    client_send(f->client, VTEST_SUBMIT_CMD2, SUBMIT(VTEST_SUBMIT_RING_IDX, 7, 2, 9, 1, 3));
    client_send(f->client, VTEST_SYNC_READ, 1);
    client_send(f->client, VTEST_SYNC_WAIT, 0, UINT32_MAX, 1, 5, 0);
    fixture_run(f);

    client_answer(f->client, VTEST_SYNC_CREATE, answer, 1);
    client_answer(f->client, VTEST_SYNC_READ, answer, 2);
    g_assert_cmpuint(answer[0], ==, 0);
    client_answer(f->client, VTEST_SYNC_WAIT, NULL, 0);
    fd = client_answer_fd(f->client);
    g_assert_cmpint(fake_virgl.submitted, ==, 2);
    g_assert_false(fixture_is_ready(fd));
    fake_virgl_signal(0);
    g_assert_true(fixture_is_ready(fd));
    close(fd);
}

/* Without a ring there is nothing to wait for. Two batches lie side by side. */
static void test_submit_two(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t answer[2];

    client_hello(f->client);
    client_send(f->client, VTEST_SYNC_CREATE, 0, 0);
    client_send(f->client, VTEST_SUBMIT_CMD2, 2, 0, 13, 0, 13, 1, 0, 0, 13, 0, 16, 1, 0, 1, 5, 0, 1,
                6, 1);
    client_send(f->client, VTEST_SYNC_READ, 1);
    fixture_run(f);
    client_answer(f->client, VTEST_SYNC_CREATE, answer, 1);
    client_answer(f->client, VTEST_SYNC_READ, answer, 2);
    g_assert_cmpuint(answer[0], ==, 6);
    g_assert_cmpuint(answer[1], ==, 1);
}

/*
 * Batches that are the commands of their last one, which make a ring: the ring's idle time, which
 * is raised, is that batch's own size.
 */
static void test_submit_itself(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t submit[29] = {
        [0] = 4,           /* batches */
        [6] = 188,         /* vkCreateRingMESA, in a number that the first does not use */
        [10] = 1,          /* a description */
        [12] = 1000384000, /* of a ring */
        [20] = 6,          /* where the last one's commands begin, and how many there are */
        [21] = 23,
    };

    client_hello(f->client);
    client_message(f->client, VTEST_SUBMIT_CMD2, submit, G_N_ELEMENTS(submit));
    fixture_run(f);
    g_assert_cmpint(fake_virgl.submitted, ==, 23);
    g_assert_cmpuint(fake_virgl.submitted_words[15], ==, 20000000);
}

/* What a wait sees if the guard ends under it: Mesa takes that for a lost device. */
static void test_wait_lost(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t answer;
    int fd;

    client_hello(f->client);
    client_send(f->client, VTEST_SYNC_CREATE, 0, 0);
    client_send(f->client, VTEST_SYNC_WAIT, 0, UINT32_MAX, 1, 5, 0);
    fixture_run(f);
    client_answer(f->client, VTEST_SYNC_CREATE, &answer, 1);
    client_answer(f->client, VTEST_SYNC_WAIT, NULL, 0);
    fd = client_answer_fd(f->client);
    g_assert_false(fixture_is_lost(fd));
    sync_table_clear(&f->session.syncs);
    g_assert_true(fixture_is_lost(fd));
    sync_table_init(&f->session.syncs);
    close(fd);
}

/* A wait whose answer is deferred gets it before the next message's, and before the end. */
static void test_wait_deferred(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t answer;

    client_hello(f->client);
    f->session.syncs.quick = true;
    client_send(f->client, VTEST_SYNC_CREATE, 0, 0);
    client_send(f->client, VTEST_SYNC_WAIT, 0, UINT32_MAX, 1, 5, 0);
    client_send(f->client, VTEST_PING_PROTOCOL_VERSION);
    client_send(f->client, VTEST_SYNC_WAIT, 0, UINT32_MAX, 1, 6, 0);
    fixture_run(f);
    client_answer(f->client, VTEST_SYNC_CREATE, &answer, 1);
    for (int i = 0; i < 2; i++) {
        int fd;

        client_answer(f->client, VTEST_SYNC_WAIT, NULL, 0);
        fd = client_answer_fd(f->client);
        g_assert_false(fixture_is_ready(fd));
        close(fd);
        if (i == 0)
            client_answer(f->client, VTEST_PING_PROTOCOL_VERSION, NULL, 0);
    }
}

/* virglrenderer reports the fences of a dead worker as done. */
static void test_worker_dies(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t answer;
    int fd;

    client_hello(f->client);
    client_send(f->client, VTEST_SYNC_CREATE, 0, 0);
    client_send(f->client, VTEST_SYNC_WAIT, 0, UINT32_MAX, 1, 5, 0);
    client_send(f->client, VTEST_SUBMIT_CMD2, 1, VTEST_SUBMIT_RING_IDX, 0, 0, 7, 1, 3, 1, 5, 0);
    fixture_run(f);
    client_answer(f->client, VTEST_SYNC_CREATE, &answer, 1);
    client_answer(f->client, VTEST_SYNC_WAIT, NULL, 0);
    fd = client_answer_fd(f->client);
    fake_virgl_kill_worker(SESSION_CONTEXT);
    g_assert_false(fixture_is_ready(fd));
    fixture_run_dropped(f, "its render worker has ended");
    close(fd);
}

static void *run_session(void *session)
{
    return GINT_TO_POINTER(session_run(session));
}

/* A session that waits for its client hears of it at once. */
static void test_worker_dies_unasked(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    GThread *thread;
    uint32_t answer;

    client_hello(f->client);
    client_send(f->client, VTEST_SYNC_CREATE, 0, 0);
    thread = g_thread_new("session", run_session, &f->session);
    client_answer(f->client, VTEST_SYNC_CREATE, &answer, 1);
    fake_virgl_kill_worker(SESSION_CONTEXT);
    g_assert_false(GPOINTER_TO_INT(g_thread_join(thread)));
    g_assert_cmpstr(f->session.fault, ==, "its render worker has ended");
}

/* A client that waits for its answer learns by an error, and not by an end, that none will come. */
static void test_end_is_an_error(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    char byte;

    client_name(f->client);
    client_send(f->client, VTEST_GET_PARAM);
    fixture_run_dropped(f, "it sends command 15 with 0 words");
    close(f->guard);
    f->guard = -1;
    g_assert_cmpint(recv(f->client, &byte, 1, 0), ==, -1);
    g_assert_cmpint(errno, ==, ECONNRESET);
}

static void test_worker_gone(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    client_hello(f->client);
    fake_virgl.submit_result = -1;
    client_send(f->client, VTEST_SUBMIT_CMD2, SUBMIT(0, 7, 2, 9, 0, 0));
    fixture_run_dropped(f, "its render worker does not take commands");
}

static void test_probe(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_assert_true(session_probe(&f->session, true)); /* no context, nobody to ask */
    g_assert_cmpuint(fake_virgl.fences->len, ==, 0);
    client_hello(f->client);
    fixture_run(f);
    g_assert_true(session_probe(&f->session, true));
    g_assert_true(session_probe(&f->session, true));
    g_assert_cmpuint(fake_virgl.fences->len, ==, 1);
    fake_virgl_signal(0);
    fake_virgl.fence_result = -1;
    g_assert_false(session_probe(&f->session, true));
    g_assert_cmpstr(f->session.fault, ==, "its render worker has ended");
}

static bool count_idle(void *data)
{
    ++*(int *)data;
    return true;
}

/*
 * A slow sender's worker is checked meanwhile. Bytes come one by one here because each has a
 * descriptor of its own.
 */
static void test_trickle(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const uint32_t header[] = {64, VTEST_SUBMIT_CMD2};
    int idle = 0;

    client_hello(f->client);
    client_write(f->client, header, sizeof(header));
    f->session.wire.idle = count_idle;
    f->session.wire.data = &idle;
    for (int i = 0; i < 5; i++)
        g_assert_true(client_write_fd(f->client, f->client));
    fixture_run_dropped(f, "*ends in the middle");
    g_assert_cmpint(idle, >=, 3);
}

/* One of Mesa's, in the client's first blob. */
static void make_ring(struct fixture *f)
{
    uint32_t submit[7 + G_N_ELEMENTS(mesa_create_ring)] = {1, 0, 7, G_N_ELEMENTS(mesa_create_ring),
                                                           7};

    client_hello(f->client);
    client_send(f->client, VTEST_RESOURCE_CREATE_BLOB, 2, 1, MESA_RING_SIZE, 0, 0, 0);
    memcpy(submit + 7, mesa_create_ring, sizeof(mesa_create_ring));
    client_message(f->client, VTEST_SUBMIT_CMD2, submit, G_N_ELEMENTS(submit));
    fixture_run(f);
    g_assert_cmpuint(fake_virgl.submitted_words[MESA_RING_IDLE_TIMEOUT], ==, 20000000);
}

/* What the worker and its client write there. */
static void set_control(struct fixture *f, const uint32_t *control)
{
    uint64_t size;
    void *memory = session_map_shm(&f->session, 1, &size);

    g_assert_nonnull(memory);
    memcpy(memory, control, MESA_RING_CONTROL_WORDS * sizeof(*control));
}

static void test_wake(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t control[MESA_RING_CONTROL_WORDS] = {[MESA_RING_TAIL] = 80, [MESA_RING_STATUS] = 1};

    make_ring(f);
    set_control(f, control);
    g_test_expect_message(G_LOG_DOMAIN, G_LOG_LEVEL_MESSAGE, "*woken");
    g_assert_true(session_probe(&f->session, true));
    g_test_assert_expected_messages();
    g_assert_cmpmem(fake_virgl.submitted_words, sizeof(mesa_notify_ring), mesa_notify_ring,
                    sizeof(mesa_notify_ring));
    fake_virgl.submitted = -1;
    control[MESA_RING_STATUS] = 0;
    set_control(f, control);
    g_assert_true(session_probe(&f->session, true));
    g_assert_cmpint(fake_virgl.submitted, ==, -1);
}

/* While a message is being read nothing is logged: it may be the one that wakes the worker. */
static void test_wake_in_time(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t control[MESA_RING_CONTROL_WORDS] = {[MESA_RING_TAIL] = 80, [MESA_RING_STATUS] = 1};

    make_ring(f);
    set_control(f, control);
    fake_virgl.submitted = -1;
    g_assert_true(session_probe(&f->session, false)); /* a message would be fatal */
    g_assert_cmpint(fake_virgl.submitted, ==, G_N_ELEMENTS(mesa_notify_ring));
    g_assert_false(f->session.woken);
}

/* A wait for a ring that has come to that point is not sent; any other is. */
static void test_wait_over(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t control[MESA_RING_CONTROL_WORDS] = {[MESA_RING_HEAD] = 80};
    uint32_t submit[7 + 6] = {1, 0, 7, 6, 7, 0, 0, 253, 0, 0x2c03ff80, 0x55a1, 80, 0};

    make_ring(f);
    set_control(f, control);
    fake_virgl.submitted = -1;
    g_assert_true(session_submit(&f->session, submit, G_N_ELEMENTS(submit)));
    g_assert_cmpint(fake_virgl.submitted, ==, -1);
    submit[11] = 81;
    g_assert_true(session_submit(&f->session, submit, G_N_ELEMENTS(submit)));
    g_assert_cmpint(fake_virgl.submitted, ==, 6);
}

/* Silence, as if @session had waited for so long that it looks again. */
static void be_idle(struct session *session)
{
    session->probed = 0;
    g_assert_true(session->wire.idle(session->wire.data));
    while (fake_virgl.fences->len)
        fake_virgl_signal(0);
}

/* A worker that is found at rest twice is left alone until its client sends something. */
static void test_rest(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t control[MESA_RING_CONTROL_WORDS] = {[MESA_RING_STATUS] = 0};
    struct session *session = &f->session;

    session->wire.idle_ms = -1;
    session->rests = true;
    make_ring(f);
    g_assert_cmpint(session->wire.idle_ms, >, 0);
    g_assert_false(session->rests);
    set_control(f, control);
    for (int i = 0; i < 4; i++)
        be_idle(session);
    g_assert_cmpint(session->wire.idle_ms, >, 0);
    control[MESA_RING_STATUS] = 1;
    set_control(f, control);
    be_idle(session);
    g_assert_cmpint(session->wire.idle_ms, >, 0);
    be_idle(session);
    g_assert_cmpint(session->wire.idle_ms, ==, -1);
}

#define MAX_CASE_WORDS 16

static const struct bad_case {
    const char *name;
    const char *fault;
    bool context;
    uint32_t words[MAX_CASE_WORDS];
    uint32_t count;
} bad_cases[] = {
#define BAD(name, fault, context, ...)                                                             \
    {name, fault, context, {__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)}
    BAD("unknown-command", "*command 99, which*", true, 0, 99),
    BAD("unused-command", "*command 2, which*", true, 10, 2),
    BAD("huge-command", "*command 4294967295, which*", true, 0, UINT32_MAX),
    BAD("too-long", "*command 10 with 1 words", true, 1, VTEST_PING_PROTOCOL_VERSION),
    BAD("too-short", "*command 19 with 1 words", true, 1, VTEST_SYNC_CREATE),
    BAD("huge", "*command 24 with 4294967295 words", true, UINT32_MAX, VTEST_SUBMIT_CMD2),
    BAD("over-a-message", "*command 24 with*", true, (1u << 18) + 1, VTEST_SUBMIT_CMD2),
    BAD("early", "*before it has a context", false, 2, VTEST_SYNC_CREATE),
    BAD("name-twice", "it names itself twice", true, 4, VTEST_CREATE_RENDERER),
    BAD("two-contexts", "it has a context already", true, 1, VTEST_CONTEXT_INIT, 4),
    BAD("opengl", "*kind 2; only Venus*", false, 1, VTEST_CONTEXT_INIT, 2),
    BAD("busy-wait", "*OpenGL's resources*", false, 2, VTEST_RESOURCE_BUSY_WAIT, 1, 0),
    BAD("half-header", "*ends in the middle", true, 2),
    BAD("half-data", "*ends in the middle", true, 2, VTEST_SYNC_CREATE, 0),
    BAD("no-data", "*ends in the middle", true, 2, VTEST_SYNC_CREATE),
    BAD("blob-guest", "*kind that is not offered", true, 6, 18, 1, 1, 4096, 0, 0, 0),
    BAD("blob-flags", "*unknown flags", true, 6, 18, 2, 8, 4096, 0, 0, 0),
    BAD("blob-empty", "*an impossible size", true, 6, 18, 2, 1, 0, 0, 0, 0),
    BAD("blob-huge", "*an impossible size", true, 6, 18, 2, 1, 0, 0xffffffff, 1, 0),
    BAD("unref-unknown", "*blob that it does not have", true, 1, VTEST_RESOURCE_UNREF, 1),
    BAD("sync-unref", "*sync that it does not have", true, 1, VTEST_SYNC_UNREF, 1),
    BAD("sync-read", "*sync that it does not have", true, 1, VTEST_SYNC_READ, 0),
    BAD("sync-write", "*sync that it does not have", true, 3, VTEST_SYNC_WRITE, 1, 0, 0),
    BAD("sync-wait", "*sync that it does not have", true, 5, VTEST_SYNC_WAIT, 0, 0, 1, 0, 0),
    BAD("sync-wait-form", "*wrong form", true, 4, VTEST_SYNC_WAIT, 0, 0, 1, 0),
    BAD("sync-wait-flags", "*wrong form", true, 2, VTEST_SYNC_WAIT, 2, 0),
    BAD("batches", "*data outside of it", true, 2, VTEST_SUBMIT_CMD2, 1, 0),
    BAD("batch-cut", "*data outside of it", true, 6, VTEST_SUBMIT_CMD2, 1, 0, 0, 0, 0, 0),
    BAD("batches-huge", "*data outside of it", true, 1, VTEST_SUBMIT_CMD2, UINT32_MAX),
    BAD("batch-command", "*data outside of it", true, 7, 24, 1, 0, 7, 1, 0, 0, 0),
    BAD("batch-wraps", "*data outside of it", true, 7, 24, 1, 0, UINT32_MAX, 1, 0, 0, 0),
    BAD("batch-syncs", "*data outside of it", true, 7, 24, 1, 0, 0, 0, 5, 1, 0),
    BAD("batch-many-syncs", "*data outside of it", true, 7, 24, 1, 0, 0, 0, 0, 0x55555556, 0),
    BAD("batch-flags", "*unknown flags", true, 7, 24, 1, 2, 0, 0, 0, 0, 0),
    BAD("batch-ring", "*an unknown ring", true, 7, 24, 1, 1, 0, 0, 0, 0, 64),
#undef BAD
};

static void test_bad(gconstpointer data)
{
    const struct bad_case *bad = data;
    struct fixture f;

    fixture_set_up(&f, NULL);
    if (bad->context)
        client_hello(f.client);
    else
        client_name(f.client);
    client_write(f.client, bad->words, bad->count * sizeof(uint32_t));
    fixture_run_dropped(&f, bad->fault);
    fixture_tear_down(&f, NULL);
}

static void test_no_name(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    client_send(f->client, VTEST_PING_PROTOCOL_VERSION);
    fixture_run_dropped(f, "it begins with command 10 instead of its name");
}

static void test_long_name(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const uint32_t header[] = {GUARD_NAME_MAX + 1, VTEST_CREATE_RENDERER};

    client_write(f->client, header, sizeof(header));
    fixture_run_dropped(f, "its name has 1025 bytes");
}

/* Unexpected descriptors are closed, wherever they come. */
static void test_descriptors(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const uint32_t ping[] = {0, VTEST_PING_PROTOCOL_VERSION};
    const char *bytes = (const char *)ping;
    int probe = dup(f->client);

    close(probe);
    client_name(f->client);
    /* Each byte of the message but the last with a descriptor, if it is a zero. */
    for (size_t i = 0; i < sizeof(ping); i++) {
        if (bytes[i] == 0 && i + 1 < sizeof(ping))
            g_assert_true(client_write_fd(f->client, f->client));
        else
            client_write(f->client, bytes + i, 1);
    }
    fixture_run(f);
    client_answer(f->client, VTEST_PING_PROTOCOL_VERSION, NULL, 0);
    g_assert_cmpint(fcntl(probe, F_GETFD), ==, -1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    guard_test("/session/handshake", test_handshake);
    guard_test("/session/old-version", test_old_version);
    guard_test("/session/name", test_name);
    guard_test("/session/blobs", test_blobs);
    guard_test("/session/blob-refused", test_blob_refused);
    guard_test("/session/blob-opaque", test_blob_opaque);
    guard_test("/session/kept", test_kept);
    guard_test("/session/kept-shm", test_kept_shm);
    guard_test("/session/not-kept", test_not_kept);
    guard_test("/session/keeper-gone", test_keeper_gone);
    guard_test("/session/shm-limit", test_shm_limit);
    guard_test("/session/submit", test_submit);
    guard_test("/session/submit-two", test_submit_two);
    guard_test("/session/submit-itself", test_submit_itself);
    guard_test("/session/wait-lost", test_wait_lost);
    guard_test("/session/wait-deferred", test_wait_deferred);
    guard_test("/session/end-is-an-error", test_end_is_an_error);
    guard_test("/session/worker-gone", test_worker_gone);
    guard_test("/session/worker-dies", test_worker_dies);
    guard_test("/session/worker-dies-unasked", test_worker_dies_unasked);
    guard_test("/session/probe", test_probe);
    guard_test("/session/trickle", test_trickle);
    guard_test("/session/wake", test_wake);
    guard_test("/session/wake-in-time", test_wake_in_time);
    guard_test("/session/rest", test_rest);
    guard_test("/session/wait-over", test_wait_over);
    guard_test("/session/no-name", test_no_name);
    guard_test("/session/long-name", test_long_name);
    guard_test("/session/descriptors", test_descriptors);
    for (size_t i = 0; i < G_N_ELEMENTS(bad_cases); i++) {
        g_autofree char *path = g_strconcat("/session/bad/", bad_cases[i].name, NULL);

        g_test_add_data_func(path, &bad_cases[i], test_bad);
    }
    return g_test_run();
}
