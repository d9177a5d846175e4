// SPDX-License-Identifier: MIT
/*
 * The engine over the real virglrenderer and its render workers, on lavapipe: two programs of one
 * guest, of which one has its ring held up. What the unit test plays, virglrenderer does here.
 */
#include "capset.h"
#include "engine.h"
#include "fake_driver.h"
#include "mesa_ring.h"
#include "queue.h"
#include "renderer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HELD               1u
#define OTHER              2u
#define ROUNDS             200
#define RING_RESOURCE_WORD 14
#define RING_BUFFER        (0xc0 / 4)
#define ANSWER_ROOM        4096u
#define LIMIT              (60 * G_TIME_SPAN_SECOND)

static struct fake_driver driver;
static struct engine engine;
static uint32_t next_resource = 1;

const char *__asan_default_options(void);

/* The Vulkan loader and virglrenderer are not ours to mend. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static uint32_t type_of(uint32_t token)
{
    const GByteArray *answer = fake_driver_answer(&driver, token);

    return answer ? ((const struct virtio_gpu_ctrl_hdr *)(const void *)answer->data)->type : 0;
}

static uint32_t send_request(const void *request, size_t size)
{
    uint32_t token = fake_driver_send(&driver, VGPU_QUEUE_CONTROL, request, size, ANSWER_ROOM);

    g_assert_cmpint(queue_run(&engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
    return token;
}

/* What the loop does while a context is held. */
static uint32_t wait_for(uint32_t token)
{
    gint64 until = g_get_monotonic_time() + LIMIT;

    while (!type_of(token) && g_get_monotonic_time() < until) {
        struct pollfd wake = {.fd = engine.fences.wake_fd, .events = POLLIN};
        uint64_t count;

        if (poll(&wake, 1, 0) > 0 && read(wake.fd, &count, sizeof(count)) > 0)
            g_assert_cmpint(queue_run(&engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
        g_usleep(50); /* a plain answer wakes nobody */
    }
    return type_of(token);
}

static void create_context(uint32_t ctx_id)
{
    struct virtio_gpu_ctx_create cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = ctx_id},
        .nlen = 4,
        .context_init = VIRTIO_GPU_CAPSET_VENUS,
        .debug_name = "live",
    };

    g_assert_cmphex(type_of(send_request(&cmd, sizeof(cmd))), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

static uint32_t destroy_context(uint32_t ctx_id)
{
    struct virtio_gpu_ctx_destroy cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = ctx_id},
    };

    return send_request(&cmd, sizeof(cmd));
}

static uint32_t create_blob(uint32_t ctx_id, uint64_t size, uint32_t *id)
{
    struct virtio_gpu_resource_create_blob cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = ctx_id},
        .resource_id = next_resource++,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
        .size = size,
    };

    *id = cmd.resource_id;
    return send_request(&cmd, sizeof(cmd));
}

static uint32_t submit(uint32_t ctx_id, const uint32_t *words, size_t count)
{
    struct virtio_gpu_cmd_submit cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = ctx_id},
        .size = (uint32_t)(count * sizeof(*words)),
    };
    g_autoptr(GByteArray) request = g_byte_array_new();

    g_byte_array_append(request, (const void *)&cmd, sizeof(cmd));
    g_byte_array_append(request, (const void *)words, cmd.size);
    return send_request(request->data, request->len);
}

/* The ring of HELD, as its guest sees it: in the window. */
static uint32_t *make_ring(void)
{
    uint32_t words[G_N_ELEMENTS(mesa_create_ring)];
    static uint64_t offset;
    struct virtio_gpu_resource_map_blob map = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
        .offset = offset,
    };
    uint32_t token = create_blob(HELD, MESA_RING_SIZE, &map.resource_id);
    const struct fake_range *range;

    g_assert_cmphex(wait_for(token), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(type_of(send_request(&map, sizeof(map))), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    range = g_hash_table_lookup(driver.published, &offset);
    offset += 1u << 18;
    memcpy(words, mesa_create_ring, sizeof(words));
    words[RING_RESOURCE_WORD] = map.resource_id;
    g_assert_cmphex(type_of(submit(HELD, words, G_N_ELEMENTS(words))), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    return range->addr;
}

static uint32_t wait_for_ring(uint32_t seqno)
{
    const uint32_t words[] = {253, 0, mesa_create_ring[2], mesa_create_ring[3], seqno, 0};

    return submit(HELD, words, G_N_ELEMENTS(words));
}

static void put_in_ring(uint32_t *ring, const uint32_t *words, size_t count)
{
    uint32_t tail = ring[MESA_RING_TAIL];

    memcpy(ring + RING_BUFFER + tail / sizeof(*words), words, count * sizeof(*words));
    __atomic_store_n(ring + MESA_RING_TAIL, tail + (uint32_t)(count * sizeof(*words)),
                     __ATOMIC_SEQ_CST);
}

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
        uint32_t blob = create_blob(OTHER, ENGINE_PAGE_SIZE, &unref.resource_id);

        g_assert_cmphex(type_of(blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
        g_assert_cmphex(wait_for(send_request(&fence, sizeof(fence))), ==,
                        VIRTIO_GPU_RESP_OK_NODATA);
        g_assert_cmphex(type_of(send_request(&unref, sizeof(unref))), ==,
                        VIRTIO_GPU_RESP_OK_NODATA);
        total += g_get_monotonic_time() - begin;
    }
    return total / ROUNDS;
}

/* The worker of the one context that there is: a child of the render server, our child. */
static pid_t the_worker(void)
{
    g_autofree char *servers = NULL;
    g_autofree char *workers = NULL;
    g_autofree char *path = NULL;
    int server;

    g_assert_true(g_file_get_contents("/proc/thread-self/children", &servers, NULL, NULL));
    server = atoi(servers);
    path = g_strdup_printf("/proc/%d/task/%d/children", server, server);
    g_assert_true(g_file_get_contents(path, &workers, NULL, NULL));
    g_assert_cmpint(atoi(workers), >, 1);
    return atoi(workers);
}

/* Held until it is let go: its answers come then, and OTHER's came meanwhile. */
static void test_held(void)
{
    static const uint32_t some_command[] = {137, 0, 1, 0};
    uint32_t blob, id;
    gint64 usual, meanwhile;
    uint32_t *ring;
    pid_t worker;

    create_context(HELD);
    worker = the_worker();
    create_context(OTHER);
    ring = make_ring();
    usual = serve_other();

    kill(worker, SIGSTOP);
    put_in_ring(ring, some_command, G_N_ELEMENTS(some_command));
    g_assert_cmphex(type_of(wait_for_ring(sizeof(some_command))), ==, VIRTIO_GPU_RESP_OK_NODATA);
    blob = create_blob(HELD, ENGINE_PAGE_SIZE, &id);
    meanwhile = serve_other();
    g_test_message("a round of the other program: %d us, meanwhile %d us", (int)usual,
                   (int)meanwhile);
    g_assert_cmphex(type_of(blob), ==, 0);

    kill(worker, SIGCONT);
    g_assert_cmphex(wait_for(blob), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(type_of(destroy_context(HELD)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* Its ring waits for what the worker can't take any more. The guest ends it. */
static void test_for_ever(void)
{
    static const uint32_t wait_for_virtqueue[] = {252, 0, 0x2c03ff80, 0x55a1, 1, 0};
    uint32_t blob, id;
    uint32_t *ring;

    create_context(HELD);
    ring = make_ring();
    put_in_ring(ring, wait_for_virtqueue, G_N_ELEMENTS(wait_for_virtqueue));
    g_assert_cmphex(type_of(wait_for_ring(sizeof(wait_for_virtqueue))), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    blob = create_blob(HELD, ENGINE_PAGE_SIZE, &id);
    serve_other();
    g_assert_cmphex(type_of(blob), ==, 0);
    g_assert_cmphex(type_of(destroy_context(HELD)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(type_of(blob), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    serve_other();
}

static bool find_lavapipe(void)
{
    g_autoptr(GDir) dir = g_dir_open("/usr/share/vulkan/icd.d", 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename("/usr/share/vulkan/icd.d", name, NULL);

        if (g_str_has_prefix(name, "lvp"))
            return g_setenv("VK_DRIVER_FILES", path, TRUE);
    }
    return false;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    int status;

    g_test_init(&argc, &argv, NULL);
    g_assert_true(find_lavapipe());
    alarm(300); /* an engine that waits for its worker would wait for ever */
    signal(SIGPIPE, SIG_IGN);
    fake_driver_init(&driver);
    engine_init(&engine, &driver.base);
    engine.info = driver.info;
    engine.epoch = driver.info.epoch;
    engine.fences.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    g_assert_true(engine_start_renderer(&engine, CAPSET_VENUS, NULL, &error));
    g_test_add_func("/live/held", test_held);
    g_test_add_func("/live/for-ever", test_for_ever);
    status = g_test_run();
    engine_reset(&engine);
    renderer_stop();
    engine_clear(&engine);
    fake_driver_clear(&driver);
    return status;
}
