// SPDX-License-Identifier: MIT
#include "live.h"

#include "mesa_ring.h"
#include "queue.h"
#include "renderer.h"
#include "watch.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RING_RESOURCE_WORD 14
#define RING_BUFFER        (0xc0 / 4)
#define ANSWER_ROOM        4096u
#define LIMIT              (60 * G_TIME_SPAN_SECOND)

struct fake_driver live_driver;
struct engine live_engine;

static uint32_t next_resource = 1;
static uint64_t next_offset;

const char *__asan_default_options(void);

/* The Vulkan loader and virglrenderer are not ours to mend. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

uint32_t live_type_of(uint32_t token)
{
    const GByteArray *answer = fake_driver_answer(&live_driver, token);

    return answer ? ((const struct virtio_gpu_ctrl_hdr *)(const void *)answer->data)->type : 0;
}

uint32_t live_send(const void *request, size_t size)
{
    uint32_t token = fake_driver_send(&live_driver, VGPU_QUEUE_CONTROL, request, size, ANSWER_ROOM);

    g_assert_cmpint(queue_run(&live_engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
    return token;
}

void live_turn(void)
{
    struct pollfd fds[] = {
        {.fd = live_engine.fences.wake_fd, .events = POLLIN},
        {.fd = live_engine.lifelines.fd, .events = POLLIN},
    };
    uint64_t count;

    if (poll(fds, G_N_ELEMENTS(fds), 0) <= 0) {
        g_usleep(50); /* a plain answer wakes nobody */
        return;
    }
    if (fds[1].revents)
        watch_lost(&live_engine);
    if (fds[0].revents && read(fds[0].fd, &count, sizeof(count)) > 0)
        g_assert_cmpint(queue_run(&live_engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
}

uint32_t live_wait_for(uint32_t token)
{
    gint64 until = g_get_monotonic_time() + LIMIT;

    while (!live_type_of(token) && g_get_monotonic_time() < until)
        live_turn();
    return live_type_of(token);
}

void live_create_context(uint32_t ctx_id)
{
    struct virtio_gpu_ctx_create cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = ctx_id},
        .nlen = 4,
        .context_init = VIRTIO_GPU_CAPSET_VENUS,
        .debug_name = "live",
    };

    g_assert_cmphex(live_type_of(live_send(&cmd, sizeof(cmd))), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

uint32_t live_destroy_context(uint32_t ctx_id)
{
    struct virtio_gpu_ctx_destroy cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = ctx_id},
    };

    return live_send(&cmd, sizeof(cmd));
}

uint32_t live_create_blob(uint32_t ctx_id, uint64_t size, uint32_t *id)
{
    struct virtio_gpu_resource_create_blob cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = ctx_id},
        .resource_id = next_resource++,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
        .size = size,
    };

    *id = cmd.resource_id;
    return live_send(&cmd, sizeof(cmd));
}

uint32_t live_submit(uint32_t ctx_id, uint32_t flags, const uint32_t *words, size_t count)
{
    struct virtio_gpu_cmd_submit cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .flags = flags, .ctx_id = ctx_id},
        .size = (uint32_t)(count * sizeof(*words)),
    };
    g_autoptr(GByteArray) request = g_byte_array_new();

    g_byte_array_append(request, (const void *)&cmd, sizeof(cmd));
    g_byte_array_append(request, (const void *)words, cmd.size);
    return live_send(request->data, request->len);
}

uint32_t *live_make_ring(uint32_t ctx_id)
{
    uint32_t words[G_N_ELEMENTS(mesa_create_ring)];
    struct virtio_gpu_resource_map_blob map = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
        .offset = next_offset,
    };
    uint32_t token = live_create_blob(ctx_id, MESA_RING_SIZE, &map.resource_id);
    const struct fake_range *range;

    g_assert_cmphex(live_wait_for(token), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(live_type_of(live_send(&map, sizeof(map))), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    range = g_hash_table_lookup(live_driver.published, &next_offset);
    next_offset += 1u << 18;
    memcpy(words, mesa_create_ring, sizeof(words));
    words[RING_RESOURCE_WORD] = map.resource_id;
    g_assert_cmphex(live_type_of(live_submit(ctx_id, 0, words, G_N_ELEMENTS(words))), ==,
                    VIRTIO_GPU_RESP_OK_NODATA);
    return range->addr;
}

uint32_t live_wait_for_ring(uint32_t ctx_id, uint32_t flags, uint32_t seqno)
{
    const uint32_t words[] = {253, 0, mesa_create_ring[2], mesa_create_ring[3], seqno, 0};

    return live_submit(ctx_id, flags, words, G_N_ELEMENTS(words));
}

void live_put_in_ring(uint32_t *ring, const uint32_t *words, size_t count)
{
    uint32_t tail = ring[MESA_RING_TAIL];

    memcpy(ring + RING_BUFFER + tail / sizeof(*words), words, count * sizeof(*words));
    __atomic_store_n(ring + MESA_RING_TAIL, tail + (uint32_t)(count * sizeof(*words)),
                     __ATOMIC_SEQ_CST);
}

/* A child of the render server, our child. */
pid_t live_worker(void)
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

void live_begin(int *argc, char ***argv, unsigned int limit)
{
    g_autoptr(GError) error = NULL;

    g_test_init(argc, argv, NULL);
    g_assert_true(find_lavapipe());
    alarm(limit);
    signal(SIGPIPE, SIG_IGN);
    fake_driver_init(&live_driver);
    engine_init(&live_engine, &live_driver.base);
    live_engine.info = live_driver.info;
    live_engine.epoch = live_driver.info.epoch;
    live_engine.fences.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    g_assert_true(engine_start_renderer(&live_engine, &error));
}

void live_reset(void)
{
    engine_reset(&live_engine);
    next_resource = 1;
    next_offset = 0;
}

void live_end(void)
{
    engine_reset(&live_engine);
    renderer_stop();
    engine_clear(&live_engine);
    fake_driver_clear(&live_driver);
}
