// SPDX-License-Identifier: MIT
/*
 * CUDA contexts: what a guest may send, and what a worker may. The worker is this program, started
 * again in a role that its environment names; tests/cuda/test-vm.c has the real one.
 */
#include "fixture.h"
#include "state.h"
#include "watch.h"
#include "wire/channel.h"
#include "wire/control.h"
#include "lib/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROLE    "TEST_CUDA_ROLE"
#define CONTEXT 3
#define PAGE    10 /* resource ids */
#define SHARE   11
#define ARENA   0x110000000000ull

/* The worker. */

static int make_memory(const char *role, size_t bytes)
{
    int fd = memfd_create("test", MFD_ALLOW_SEALING);

    if (!strcmp(role, "short"))
        bytes -= 4096;
    if (ftruncate(fd, (off_t)bytes) < 0 ||
        (strcmp(role, "unsealed") && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0))
        _exit(1);
    return fd;
}

static size_t copies = 1; /* of a descriptor in a message */

static void send_reply(int socket, const void *data, size_t bytes, int fd)
{
    const int fds[] = {fd, fd};

    if (descriptor_send(socket, data, bytes, 0, fds, copies) != (ssize_t)bytes)
        _exit(1);
}

static void serve(int socket, const char *role, const struct control_hello *hello)
{
    const struct control_message *message = &hello->message;
    struct control_welcome welcome = {.reply = {CONTROL_MAGIC, CONTROL_OK, 0}, .major = 7};
    struct control_reply reply = {CONTROL_MAGIC, CONTROL_OK, 0};
    bool is_poor = message->kind == CONTROL_SHARE_GUEST && !strcmp(role, "poor");
    bool is_channel = message->kind == CONTROL_CHANNEL;
    int fd = -1;

    if (!strcmp(role, "silent"))
        return;
    if (!strcmp(role, "wordless")) {
        send_reply(socket, &reply, 0, socket);
        return;
    }
    if (message->kind == CONTROL_HELLO) {
        send_reply(socket, &welcome, strcmp(role, "cut") ? sizeof(welcome) : sizeof(reply), -1);
        return;
    }
    if (is_channel || message->kind == CONTROL_SHARE_NEW)
        fd = make_memory(role, is_channel ? sizeof(struct channel_shared) : message->bytes);
    if (!strcmp(role, "empty"))
        fd = -1;
    if (is_poor)
        reply.result = CONTROL_NO_MEMORY;
    send_reply(socket, &reply, sizeof(reply), fd);
    if (!strcmp(role, "unasked"))
        send_reply(socket, &reply, sizeof(reply), -1);
    /* Here the client's question is also when it is answered. */
    if (message->kind == CONTROL_SHARE_END && message->address == ARENA) {
        reply.result = CONTROL_ANSWERED;
        reply.value = ARENA;
        copies = 2;
        send_reply(socket, &reply, sizeof(reply), strcmp(role, "generous") ? -1 : socket);
        copies = 1;
    }
}

static int be_worker(int socket)
{
    const char *role = g_getenv(ROLE);
    struct control_hello hello;
    int given;

    if (!strcmp(role, "dies"))
        return 0;
    /* It has looked at the question, and not read it. */
    if (!strcmp(role, "last-word")) {
        recv(socket, &hello, sizeof(hello), MSG_PEEK);
        serve(socket, role, &hello);
        return 0;
    }
    while (descriptor_receive(socket, &hello, sizeof(hello), 0, &given, 1) > 0) {
        if ((hello.message.kind == CONTROL_SHARE_GUEST) != (given >= 0))
            return 1;
        close(given);
        serve(socket, role, &hello);
    }
    return 0;
}

/* The guest. */

static void set_up(struct fixture *f, gconstpointer role)
{
    static char path[4096];
    const struct cuda_worker worker = {.path = path};

    if (!path[0])
        g_assert_cmpint(readlink("/proc/self/exe", path, sizeof(path) - 1), >, 0);
    fixture_set_up(f, NULL);
    if (!role)
        return;
    g_setenv(ROLE, role, TRUE);
    cuda_host_offer(&f->engine.cuda, &worker);
    f->engine.capsets[f->engine.num_capsets++] =
        (struct engine_capset){CONTROL_CAPSET, CONTROL_MAJOR, sizeof(struct control_caps)};
}

static void tear_down(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    engine_reset(&f->engine);
    while (cuda_host_kill(&f->engine.cuda, NULL))
        cuda_host_reaped(&f->engine.cuda, waitpid(-1, NULL, 0));
    g_assert_cmpuint(f->engine.shm_bytes, ==, 0);
    g_assert_cmpuint(f->engine.mappings, ==, 0);
    g_assert_cmpuint(f->engine.cuda.waits, ==, 0);
    fixture_tear_down(f, NULL);
}

static uint32_t create_context(struct fixture *f)
{
    struct virtio_gpu_ctx_create cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = CONTEXT},
        .context_init = CONTROL_CAPSET,
    };

    return fixture_ask(f, &cmd, sizeof(cmd));
}

static uint32_t create_blob(struct fixture *f, uint32_t resource, uint64_t id, uint64_t size)
{
    struct virtio_gpu_resource_create_blob cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = CONTEXT},
        .resource_id = resource,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
        .blob_id = id,
        .size = size,
    };

    return fixture_ask(f, &cmd, sizeof(cmd));
}

static void *map_blob(struct fixture *f, uint32_t resource, uint64_t offset)
{
    struct virtio_gpu_resource_map_blob cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB, .resource_id = resource, .offset = offset};

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    return ((struct fake_range *)g_hash_table_lookup(f->driver.published, &offset))->addr;
}

static struct control_page *make_page(struct fixture *f)
{
    g_assert_cmphex(create_blob(f, PAGE, CONTROL_PAGE_BLOB, 4096), ==, VIRTIO_GPU_RESP_OK_NODATA);
    return map_blob(f, PAGE, 0);
}

/* @ring: 0: without a fence. */
static uint32_t submit(struct fixture *f, uint8_t ring, const void *message, uint32_t bytes)
{
    struct {
        struct virtio_gpu_cmd_submit cmd;
        uint8_t data[sizeof(struct control_hello) + 64];
    } request = {
        .cmd = {.hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D,
                        .ctx_id = CONTEXT,
                        .flags = ring ? VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX : 0,
                        .ring_idx = ring},
                .size = bytes}};

    memcpy(request.data, message, bytes);
    return fixture_send(f, &request, sizeof(request.cmd) + bytes);
}

static uint32_t say(struct fixture *f, uint8_t ring, uint32_t kind, uint64_t address,
                    uint64_t bytes)
{
    const struct control_message message = {CONTROL_MAGIC, kind, address, bytes};

    return submit(f, ring, &message, sizeof(message));
}

/* Until there is an answer. */
static uint32_t await(struct fixture *f, uint32_t token)
{
    struct pollfd fd = {.fd = f->engine.lifelines.fd, .events = POLLIN};

    while (!fixture_answer_type(f, token)) {
        g_assert_cmpint(poll(&fd, 1, -1), ==, 1);
        watch_lost(&f->engine);
    }
    return fixture_answer_type(f, token);
}

static void await_loss(struct fixture *f, const struct control_page *page)
{
    struct pollfd fd = {.fd = f->engine.lifelines.fd, .events = POLLIN};

    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "context 3: its worker has ended;*");
    while (page->alive == CONTROL_MAGIC) {
        g_assert_cmpint(poll(&fd, 1, -1), ==, 1);
        watch_lost(&f->engine);
    }
    g_test_assert_expected_messages();
    g_assert_cmphex(fixture_answer_type(f, say(f, 0, CONTROL_WAKE, ARENA, 0)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
}

static struct control_page *begin(struct fixture *f)
{
    g_assert_cmphex(create_context(f), ==, VIRTIO_GPU_RESP_OK_NODATA);
    return make_page(f);
}

static void make_channel(struct fixture *f, uint64_t address)
{
    uint32_t token = say(f, CONTROL_RING_ASK, CONTROL_CHANNEL, address, 0);

    g_assert_cmphex(await(f, token), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

static void test_capset(struct fixture *f, gconstpointer role)
{
    struct virtio_gpu_get_capset cmd = {.hdr.type = VIRTIO_GPU_CMD_GET_CAPSET,
                                        .capset_id = CONTROL_CAPSET};
    uint32_t token = fixture_send(f, &cmd, sizeof(cmd));
    const struct virtio_gpu_resp_capset *answer;
    const struct control_caps *caps;

    if (!role) {
        g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
        g_assert_cmphex(create_context(f), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
        return;
    }
    answer = (const void *)fake_driver_answer(&f->driver, token)->data;
    caps = (const void *)answer->capset_data;
    g_assert_cmphex(answer->hdr.type, ==, VIRTIO_GPU_RESP_OK_CAPSET);
    g_assert_cmphex(caps->magic, ==, CONTROL_MAGIC);
    g_assert_cmpuint(caps->window, ==, f->driver.info.window_bytes);
    g_assert_cmpuint(caps->flags, ==, 0);
}

/* Guest memory is lent if the driver can do its part. */
static void test_capset_of_lending(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    static const struct {
        uint32_t features, cuda, flags;
    } cases[] = {{VGPU_FEATURE_STATE, 1, 0},
                 {VGPU_FEATURE_EXPORT, 0, 0},
                 {VGPU_FEATURE_EXPORT, 1, CONTROL_CAPS_GUEST_MEMORY}};
    struct control_caps caps;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        f->engine.info.features = cases[i].features;
        f->engine.info.cuda = cases[i].cuda;
        cuda_context_fill_caps(&f->engine, &caps);
        g_assert_cmpuint(caps.flags, ==, cases[i].flags);
    }
}

static void test_hello(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_hello hello = {.message = {CONTROL_MAGIC, CONTROL_HELLO, ARENA, 4096}};
    const struct control_page *page = begin(f);
    uint32_t token = submit(f, CONTROL_RING_ASK, &hello, sizeof(hello));

    g_assert_cmpuint(page->replies, ==, 0);
    g_assert_cmphex(await(f, token), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(page->replies, ==, 1);
    g_assert_cmpuint(page->taken, ==, 1);
    g_assert_cmpuint(((const struct control_welcome *)page->reply)->major, ==, 7);
}

/* A worker says why there is no CUDA, and ends; then its engine has not read that yet. */
static void test_last_word(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_hello hello = {.message = {CONTROL_MAGIC, CONTROL_HELLO, ARENA, 4096}};
    const struct control_page *page = begin(f);
    uint32_t token = submit(f, CONTROL_RING_ASK, &hello, sizeof(hello));

    g_assert_cmpint(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOWAIT), ==, 0);
    await_loss(f, page);
    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(page->replies, ==, 1);
}

/* Nothing of it ends the context. */
static void test_bad_messages(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_message bad[] = {{0, CONTROL_WAKE, 0, 0},
                                          {CONTROL_MAGIC, 0, 0, 0},
                                          {CONTROL_MAGIC, 99, 0, 0},
                                          {CONTROL_MAGIC, CONTROL_HELLO, 0, 0}};
    const struct control_page *page = begin(f);

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_cmphex(fixture_answer_type(f, submit(f, 1, &bad[i], sizeof(bad[i]))), ==,
                        VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(fixture_answer_type(f, submit(f, 1, &bad[1], 8)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    /* A wake, and a wait, of what is no channel. */
    say(f, 0, CONTROL_WAKE, 1, 2);
    g_assert_cmphex(fixture_answer_type(f, say(f, 9, CONTROL_WAIT, 1, 2)), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(create_blob(f, SHARE, CONTROL_PAGE_BLOB, 4096), !=, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(create_blob(f, SHARE, 0, 4096), !=, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(create_blob(f, SHARE, 77, 4096), !=, VIRTIO_GPU_RESP_OK_NODATA);
    make_channel(f, ARENA);
    g_assert_cmphex(create_blob(f, SHARE, ARENA, 4096), !=, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(page->alive, ==, CONTROL_MAGIC);
}

/* The reply to the first question is not there: a second one would be mixed up with it. */
static void test_one_question(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_destroy destroy = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = CONTEXT}};
    uint32_t token;

    begin(f);
    token = say(f, CONTROL_RING_ASK, CONTROL_CHANNEL, ARENA, 0);
    g_assert_cmphex(fixture_answer_type(f, token), ==, 0);
    g_assert_cmphex(
        fixture_answer_type(f, say(f, CONTROL_RING_WAIT, CONTROL_CHANNEL, 2 * ARENA, 0)), ==,
        VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    /* The engine's own fence is not for it. */
    g_assert_true(watch_contexts(&f->engine));
    g_assert_true(watch_contexts(&f->engine));
    g_assert_cmphex(fixture_ask(f, &destroy, sizeof(destroy)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
}

/* Guest and worker have it at last, though the worker has given it back. */
static void test_memory(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    struct virtio_gpu_resource_unref unref = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                              .resource_id = SHARE};
    uint64_t before;
    uint32_t *at;

    begin(f);
    before = f->engine.shm_bytes;
    await(f, say(f, CONTROL_RING_ASK, CONTROL_SHARE_NEW, 2 * ARENA, 65536));
    g_assert_cmpuint(f->engine.shm_bytes, ==, before + 65536);
    g_assert_cmphex(create_blob(f, SHARE, 2 * ARENA, 65536), ==, VIRTIO_GPU_RESP_OK_NODATA);
    at = map_blob(f, SHARE, 65536);
    await(f, say(f, CONTROL_RING_ASK, CONTROL_SHARE_END, 2 * ARENA, 0));
    at[16383] = 1;
    g_assert_cmphex(create_blob(f, SHARE + 1, 2 * ARENA, 65536), !=, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->engine.shm_bytes, ==, before + 65536);
    g_assert_cmphex(fixture_ask(f, &unref, sizeof(unref)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->engine.shm_bytes, ==, before);
}

#define LENT 0x10000u

/* Guest memory that the program lends; the engine has it pinned then. */
static uint32_t create_lent(struct fixture *f, uint32_t resource, uint64_t id, uint64_t size)
{
    struct {
        struct virtio_gpu_resource_create_blob cmd;
        struct virtio_gpu_mem_entry entry;
    } blob = {.cmd = {.hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = CONTEXT},
                      .resource_id = resource,
                      .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D_GUEST,
                      .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
                      .nr_entries = 1,
                      .blob_id = id,
                      .size = size},
              .entry = {.addr = 0x40000000, .length = LENT}};

    return fixture_ask(f, &blob, sizeof(blob));
}

static int give_file(struct fake_driver *driver G_GNUC_UNUSED, const struct fake_range *range)
{
    g_assert_cmphex(range->iova, ==, 0x40000000);
    return memfd_create("guest", MFD_CLOEXEC);
}

static struct control_page *begin_lending(struct fixture *f)
{
    f->driver.export = give_file;
    return begin(f);
}

static uint32_t lend(struct fixture *f, const struct control_page *page, uint64_t at,
                     uint64_t bytes)
{
    await(f, say(f, CONTROL_RING_ASK, CONTROL_SHARE_GUEST, at, bytes));
    return ((const struct control_reply *)page->reply)->result;
}

static uint32_t send_unref(struct fixture *f, uint32_t resource)
{
    struct virtio_gpu_resource_unref unref = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                              .resource_id = resource};

    return fixture_send(f, &unref, sizeof(unref));
}

static void reap_worker(struct fixture *f)
{
    g_assert_true(cuda_host_reaped(&f->engine.cuda, waitpid(-1, NULL, 0)));
    parking_run(&f->engine);
}

/* The worker has given it back, so the guest can have it at once. */
static void test_lent(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin_lending(f);

    g_assert_cmphex(create_lent(f, SHARE, ARENA, LENT), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(lend(f, page, ARENA, LENT), ==, CONTROL_OK);
    g_assert_cmpuint(lend(f, page, ARENA, LENT), ==, CONTROL_NO_MEMORY);
    await(f, say(f, CONTROL_RING_ASK, CONTROL_SHARE_END, ARENA, 0));
    g_assert_cmphex(fixture_answer_type(f, send_unref(f, SHARE)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(g_hash_table_size(f->driver.pins), ==, 0);
    g_assert_cmphex(page->alive, ==, CONTROL_MAGIC);
}

/* A program that was killed: what a GPU may still write to is the guest's when its worker is gone.
 */
static void test_lent_of_killed(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin_lending(f);
    struct virtio_gpu_ctx_destroy destroy = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = CONTEXT}};
    uint32_t first, second;

    create_lent(f, SHARE, ARENA, LENT);
    create_lent(f, SHARE + 1, 2 * ARENA, LENT);
    g_assert_cmpuint(lend(f, page, ARENA, LENT), ==, CONTROL_OK);
    g_assert_cmpuint(lend(f, page, 2 * ARENA, LENT), ==, CONTROL_OK);
    first = send_unref(f, SHARE);
    g_assert_cmphex(fixture_answer_type(f, first), ==, 0);
    g_assert_cmphex(page->alive, ==, 0);
    g_assert_cmphex(fixture_ask(f, &destroy, sizeof(destroy)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    second = send_unref(f, SHARE + 1);
    parking_run(&f->engine);
    g_assert_cmphex(fixture_answer_type(f, first), ==, 0);
    g_assert_cmphex(fixture_answer_type(f, second), ==, 0);
    g_assert_cmpuint(g_hash_table_size(f->driver.pins), ==, 2);
    reap_worker(f);
    g_assert_cmphex(fixture_answer_type(f, first), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, second), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(g_hash_table_size(f->driver.pins), ==, 0);
}

/* What the worker could not take is the guest's. */
static void test_lent_to_poor(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin_lending(f);

    create_lent(f, SHARE, ARENA, LENT);
    g_assert_cmpuint(lend(f, page, ARENA, LENT), ==, CONTROL_NO_MEMORY);
    g_assert_cmphex(fixture_answer_type(f, send_unref(f, SHARE)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* Memory of a kind that cannot be lent: the program is told that it need not try again. */
static void test_lent_refused(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin(f);

    g_assert_cmphex(create_lent(f, SHARE, ARENA, LENT), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(lend(f, page, ARENA, LENT), ==, CONTROL_REFUSED);
    g_assert_cmphex(fixture_answer_type(f, send_unref(f, SHARE)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* What is none of its blobs, or is longer or shorter, reaches no worker. */
static void test_lent_lies(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin_lending(f);

    g_assert_cmphex(create_lent(f, SHARE, 0, LENT), !=, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(lend(f, page, 0, LENT), ==, CONTROL_NO_MEMORY);
    g_assert_cmpuint(lend(f, page, ARENA, LENT), ==, CONTROL_NO_MEMORY);
    create_lent(f, SHARE, ARENA, LENT);
    g_assert_cmpuint(lend(f, page, ARENA, 2 * LENT), ==, CONTROL_NO_MEMORY);
    g_assert_cmpuint(lend(f, page, ARENA, 0), ==, CONTROL_NO_MEMORY);
    g_assert_cmpuint(lend(f, page, ARENA + 4096, LENT), ==, CONTROL_NO_MEMORY);
    create_lent(f, SHARE + 1, 2 * ARENA, 2 * LENT);
    g_assert_cmpuint(lend(f, page, 2 * ARENA, 2 * LENT), ==, CONTROL_NO_MEMORY);
    g_assert_cmpuint(lend(f, page, 2 * ARENA, LENT), ==, CONTROL_NO_MEMORY);
    g_assert_cmphex(page->alive, ==, CONTROL_MAGIC);
}

/* What the worker says of one part must not be taken for another one. */
static void test_lent_twice(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin_lending(f);
    uint32_t first;

    create_lent(f, SHARE, ARENA, LENT);
    g_assert_cmpuint(lend(f, page, ARENA, LENT), ==, CONTROL_OK);
    for (uint32_t i = 1; i < 20; i++)
        g_assert_cmphex(create_lent(f, SHARE + i, ARENA, LENT), !=, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(lend(f, page, ARENA, LENT), ==, CONTROL_NO_MEMORY);
    g_assert_cmpuint(g_hash_table_size(f->driver.pins), ==, 1);
    first = send_unref(f, SHARE);
    g_assert_cmphex(fixture_answer_type(f, first), ==, 0);
    reap_worker(f);
    g_assert_cmphex(fixture_answer_type(f, first), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* Of a program that was killed, the ends of all would fill the guest's control queue. */
static void test_lent_often(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin_lending(f);

    for (uint32_t i = 0; i <= CUDA_LOANS_MAX; i++)
        g_assert_cmphex(create_lent(f, SHARE + i, (i + 1) * ARENA, LENT), ==,
                        VIRTIO_GPU_RESP_OK_NODATA);
    for (uint32_t i = 0; i < CUDA_LOANS_MAX; i++)
        g_assert_cmpuint(lend(f, page, (i + 1) * ARENA, LENT), ==, CONTROL_OK);
    g_assert_cmpuint(lend(f, page, (CUDA_LOANS_MAX + 1) * ARENA, LENT), ==, CONTROL_NO_MEMORY);
    await(f, say(f, CONTROL_RING_ASK, CONTROL_SHARE_END, 2 * ARENA, 0));
    g_assert_cmpuint(lend(f, page, (CUDA_LOANS_MAX + 1) * ARENA, LENT), ==, CONTROL_OK);
}

/* More than the window can ever show is refused without asking the worker. */
static void test_too_much(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin(f);
    uint64_t most = 2 * f->driver.info.window_bytes;
    uint32_t token = say(f, CONTROL_RING_ASK, CONTROL_SHARE_NEW, ARENA, most);

    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(page->replies, ==, 1);
    g_assert_cmpuint(((const struct control_reply *)page->reply)->result, ==, CONTROL_NO_MEMORY);
    await(f, say(f, CONTROL_RING_ASK, CONTROL_SHARE_NEW, ARENA, most - 4096));
    g_assert_cmpuint(((const struct control_reply *)page->reply)->result, ==, CONTROL_OK);
}

/* A process without mappings has no memory for anything else either, and would abort. */
static void test_too_many_mappings(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    struct {
        struct virtio_gpu_resource_create_blob cmd;
        struct virtio_gpu_mem_entry entry;
    } blob = {.cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
                      .resource_id = 50,
                      .blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST,
                      .nr_entries = 1,
                      .size = 4096},
              .entry = {.addr = 4096, .length = 4096}};
    const struct control_page *page = begin(f);
    unsigned int others = ENGINE_MAX_MAPPINGS - f->engine.mappings;

    f->engine.mappings += others;
    await(f, say(f, CONTROL_RING_ASK, CONTROL_SHARE_NEW, ARENA, 4096));
    g_assert_cmpuint(((const struct control_reply *)page->reply)->result, ==, CONTROL_NO_MEMORY);
    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    f->engine.mappings -= others;
    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    await(f, say(f, CONTROL_RING_ASK, CONTROL_SHARE_NEW, ARENA, 4096));
    g_assert_cmpuint(((const struct control_reply *)page->reply)->result, ==, CONTROL_OK);
}

/* What one context has asked for, no other can have, though its worker has not made it. */
static void test_reserved(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin(f);
    uint64_t most = 2 * f->driver.info.window_bytes;

    say(f, CONTROL_RING_ASK, CONTROL_SHARE_NEW, ARENA, most - 8192);
    g_assert_cmpuint(page->replies, ==, 0);
    g_assert_cmpuint(f->engine.shm_bytes, ==, most - 4096);
    fixture_reset(f);
    g_assert_cmpuint(f->engine.shm_bytes, ==, 0);
}

static void test_waits(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    struct channel_shared *channel;
    uint32_t waiting;

    begin(f);
    make_channel(f, ARENA);
    g_assert_cmphex(create_blob(f, SHARE, ARENA, sizeof(*channel)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    channel = map_blob(f, SHARE, 4096);
    waiting = say(f, 5, CONTROL_WAIT, ARENA, 1);
    g_assert_cmphex(fixture_answer_type(f, waiting), ==, 0);
    g_assert_cmpuint(f->engine.cuda.waits, ==, 1);
    /* The same channel's next one ends the first. */
    say(f, 6, CONTROL_WAIT, ARENA, 1);
    g_assert_cmphex(fixture_answer_type(f, waiting), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->engine.cuda.waits, ==, 1);
    atomic_store(&channel->worker.done, 1);
    waiting = say(f, 6, CONTROL_WAIT, ARENA, 1);
    g_assert_cmphex(fixture_answer_type(f, waiting), ==, VIRTIO_GPU_RESP_OK_NODATA);
    /* By the worker's message, which this one sends with its reply to that. */
    waiting = say(f, 6, CONTROL_WAIT, ARENA, 2);
    say(f, CONTROL_RING_ASK, CONTROL_SHARE_END, ARENA, 0);
    g_assert_cmphex(await(f, waiting), ==, VIRTIO_GPU_RESP_OK_NODATA);
    atomic_store(&channel->worker.state, CHANNEL_ASLEEP);
    make_channel(f, ARENA);
    say(f, 0, CONTROL_WAKE, ARENA, 0);
}

static void test_too_many_waits(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    f->driver.info.window_bytes = f->engine.info.window_bytes = 64u << 20;
    begin(f);
    for (uint64_t i = 0; i <= CUDA_WAITS_MAX; i++) {
        uint64_t address = ARENA + (i + 1) * 0x100000;
        uint32_t token;

        make_channel(f, address);
        token = say(f, 7, CONTROL_WAIT, address, 1);
        if (i == CUDA_WAITS_MAX)
            g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_NODATA);
    }
    fixture_reset(f);
}

/* The program is told at once, and its fences do not wait. */
static void test_dies(struct fixture *f, gconstpointer role)
{
    const struct control_page *page = begin(f);
    uint32_t token = strcmp(role, "dies") ? say(f, CONTROL_RING_ASK, CONTROL_CHANNEL, ARENA, 0) : 0;

    await_loss(f, page);
    if (token)
        g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_true(watch_contexts(&f->engine));
}

/* The program waits for its worker's end, also for one that owes it a reply. No journal has a word
 * of it, the guest's, which logs errors, neither. */
static void test_dismissed(struct fixture *f, gconstpointer role)
{
    const struct control_page *page = begin(f);
    bool is_silent = !strcmp(role, "silent");
    uint32_t question = say(f, CONTROL_RING_ASK, CONTROL_CHANNEL, ARENA, 0), end;

    if (!is_silent)
        g_assert_cmphex(await(f, question), ==, VIRTIO_GPU_RESP_OK_NODATA);
    end = say(f, CONTROL_RING_ASK, CONTROL_END, 0, 0);
    g_assert_cmphex(fixture_answer_type(f, end), ==, 0);
    g_assert_cmphex(await(f, end), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(page->alive, ==, 0);
    g_assert_cmphex(fixture_answer_type(f, question), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_true(watch_contexts(&f->engine));
}

static unsigned int open_files(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    unsigned int count = 0;

    while (g_dir_read_name(dir))
        count++;
    return count;
}

/* Descriptors that nobody has asked for are not kept: a worker could use up the engine's. */
static void test_too_many_descriptors(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    unsigned int before;

    begin(f);
    before = open_files();
    make_channel(f, ARENA);
    await(f, say(f, CONTROL_RING_ASK, CONTROL_SHARE_END, ARENA, 0));
    make_channel(f, 2 * ARENA);
    g_assert_cmpuint(open_files(), ==, before);
}

/* Nor one that comes with a message of no bytes, which is like the worker's end. */
static void test_descriptor_alone(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    unsigned int before = open_files();
    const struct control_page *page = begin(f);

    say(f, CONTROL_RING_ASK, CONTROL_CHANNEL, ARENA, 0);
    await_loss(f, page);
    fixture_reset(f);
    g_assert_cmpuint(open_files(), ==, before);
}

static void test_cut_reply(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_hello hello = {.message = {CONTROL_MAGIC, CONTROL_HELLO, ARENA, 4096}};
    const struct control_page *page = begin(f);

    submit(f, CONTROL_RING_ASK, &hello, sizeof(hello));
    await_loss(f, page);
    g_assert_cmpuint(page->replies, ==, 0);
}

static void test_unasked_reply(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin(f);

    say(f, CONTROL_RING_ASK, CONTROL_CHANNEL, ARENA, 0);
    await_loss(f, page);
}

static void test_no_program(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    f->engine.cuda.program.path = "/nonexistent";
    await_loss(f, begin(f));
}

static void test_reset(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    begin(f);
    make_channel(f, ARENA);
    g_assert_cmpuint(g_hash_table_size(f->engine.cuda.children), ==, 1);
    fixture_reset(f);
    g_assert_cmpuint(g_hash_table_size(f->engine.cuda.children), ==, 0);
    g_assert_cmpuint(f->engine.shm_bytes, ==, 0);
}

/* Workers that the GPU's driver holds, and that have nothing of the guest's: no process has this
 * number, so nobody is ever reaped. */
static void test_reset_of_stuck(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const pid_t nobody = INT_MAX;

    begin(f);
    cuda_host_add(&f->engine.cuda, nobody, 99);
    fixture_reset(f);
    g_assert_cmpuint(g_hash_table_size(f->engine.cuda.children), ==, 1);
    g_assert_true(cuda_host_reaped(&f->engine.cuda, nobody));
}

/* One to whom memory is lent has ended when the reset has. */
static void test_reset_of_borrower(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    const struct control_page *page = begin_lending(f);

    create_lent(f, SHARE, ARENA, LENT);
    g_assert_cmpuint(lend(f, page, ARENA, LENT), ==, CONTROL_OK);
    fixture_reset(f);
    g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1);
    g_assert_cmpuint(g_hash_table_size(f->engine.cuda.children), ==, 0);
}

/* Without virglrenderer nothing is asked of it, whatever the guest makes. */
static void test_alone(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    struct {
        struct virtio_gpu_resource_create_blob cmd;
        struct virtio_gpu_mem_entry entry;
    } blob = {.cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
                      .resource_id = 50,
                      .blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST,
                      .nr_entries = 1,
                      .size = 4096},
              .entry = {.addr = 4096, .length = 4096}};
    struct virtio_gpu_ctx_resource attach = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, .ctx_id = CONTEXT}, .resource_id = 50};
    struct virtio_gpu_ctx_create venus = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = CONTEXT + 1},
        .context_init = VIRTIO_GPU_CAPSET_VENUS};
    unsigned int resets = fake_virgl.resets;

    f->engine.has_renderer = false;
    engine_start_without_renderer(&f->engine);
    g_assert_cmpuint(f->engine.num_capsets, ==, 1);
    g_assert_cmpuint(f->engine.capsets[0].id, ==, CONTROL_CAPSET);
    g_assert_cmphex(fixture_ask(f, &venus, sizeof(venus)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    begin(f);
    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &attach, sizeof(attach)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(g_hash_table_size(fake_virgl.resources), ==, 0);
    make_channel(f, ARENA);
    fixture_reset(f);
    g_assert_cmpuint(fake_virgl.resets, ==, resets);
    f->engine.has_renderer = true;
}

/* On another host the program finds its worker gone, and its memory blank. */
static void test_moved(struct fixture *f, gconstpointer role G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_destroy destroy = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = CONTEXT}};
    struct virtio_gpu_resource_unref unref = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                              .resource_id = PAGE};
    g_autoptr(GByteArray) state = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    begin(f);
    state_save(&f->engine, state);
    fixture_reset(f);
    g_assert_true(state_load(&f->engine, state->data, state->len, &error));
    g_assert_no_error(error);
    g_assert_cmphex(fixture_answer_type(f, say(f, CONTROL_RING_ASK, CONTROL_CHANNEL, ARENA, 0)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_true(watch_contexts(&f->engine));
    g_assert_cmphex(fixture_ask(f, &unref, sizeof(unref)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &destroy, sizeof(destroy)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(create_context(f), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

#define cuda_test(path, role, function)                                                            \
    g_test_add("/cuda/" path, struct fixture, role, set_up, function, tear_down)

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "--fd"))
        return be_worker(atoi(argv[2]));
    g_test_init(&argc, &argv, NULL);
    cuda_test("capset", "honest", test_capset);
    cuda_test("not-offered", NULL, test_capset);
    cuda_test("capset-of-lending", "honest", test_capset_of_lending);
    cuda_test("hello", "honest", test_hello);
    cuda_test("last-word", "last-word", test_last_word);
    cuda_test("bad-messages", "honest", test_bad_messages);
    cuda_test("one-question", "silent", test_one_question);
    cuda_test("memory", "honest", test_memory);
    cuda_test("lent", "honest", test_lent);
    cuda_test("lent-of-killed", "honest", test_lent_of_killed);
    cuda_test("lent-to-poor", "poor", test_lent_to_poor);
    cuda_test("lent-refused", "honest", test_lent_refused);
    cuda_test("lent-lies", "honest", test_lent_lies);
    cuda_test("lent-twice", "honest", test_lent_twice);
    cuda_test("lent-often", "honest", test_lent_often);
    cuda_test("too-much", "honest", test_too_much);
    cuda_test("too-many-mappings", "honest", test_too_many_mappings);
    cuda_test("reserved", "silent", test_reserved);
    cuda_test("waits", "honest", test_waits);
    cuda_test("too-many-waits", "honest", test_too_many_waits);
    cuda_test("dies", "dies", test_dies);
    cuda_test("dismissed", "honest", test_dismissed);
    cuda_test("dismissed-while-asked", "silent", test_dismissed);
    cuda_test("unsealed-memory", "unsealed", test_dies);
    cuda_test("short-memory", "short", test_dies);
    cuda_test("no-memory", "empty", test_dies);
    cuda_test("too-many-descriptors", "generous", test_too_many_descriptors);
    cuda_test("descriptor-alone", "wordless", test_descriptor_alone);
    cuda_test("cut-reply", "cut", test_cut_reply);
    cuda_test("unasked-reply", "unasked", test_unasked_reply);
    cuda_test("no-program", "honest", test_no_program);
    cuda_test("reset", "honest", test_reset);
    cuda_test("reset-of-stuck", "honest", test_reset_of_stuck);
    cuda_test("reset-of-borrower", "honest", test_reset_of_borrower);
    cuda_test("moved", "honest", test_moved);
    cuda_test("alone", "honest", test_alone);
    return g_test_run();
}
