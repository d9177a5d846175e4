/* SPDX-License-Identifier: MIT */
/*
 * The real engine under a hostile guest: truncated commands, unknown and reused ids, blobs and
 * windows that overlap or are too large, thousands of contexts, fences without a waiter, resets in
 * the middle. Another vGPU beside it continues to work, and a reset leaves nothing behind.
 *
 * Needs vgpu-engine beside this program and lavapipe (rig up --gpu soft).
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testbed.h"

#define START_MS  120000
#define ANSWER_MS 60000
#define CONTROL   VGPU_QUEUE_CONTROL
#define VENUS     VIRTIO_GPU_CAPSET_VENUS
#define BLOB_SIZE (4 * PAGE_BYTES)
#define SEED      4711
#define RANDOMS   400
/* The engine's limit of contexts. */
#define MOST_CONTEXTS 128

typedef struct {
    Testbed *tb;
    pid_t engine;
} Victim;

static char *engine_path(void)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *dir = g_path_get_dirname(self);

    return g_build_filename(dir, "vgpu-engine", NULL);
}

static pid_t start_engine(const char *uuid)
{
    g_autofree char *path = engine_path();
    g_autofree char *node = g_build_filename("/dev/vgpu", uuid, NULL);
    pid_t pid;

    if (access(path, X_OK))
        driver_test_skip("no vgpu-engine beside this program (make driver-tests-build)");
    pid = fork();
    if (pid == 0) {
        close_range(STDERR_FILENO + 1, ~0u, 0);
        execl(path, "vgpu-engine", "--device", node, "--no-landlock", NULL);
        _exit(127);
    }
    return pid;
}

static Victim victim_new(Testbed *tb)
{
    Victim v = {.tb = tb, .engine = start_engine(tb->uuid)};

    mdev_set_engine_timeout_ms(START_MS);
    /* testbed_advance() has already passed the engine's stage. */
    tb->stage = TESTBED_AT_ENGINE;
    testbed_advance(tb, TESTBED_AT_GUEST);
    return v;
}

static void victim_free(Victim *v)
{
    int status;

    testbed_close_vmm(v->tb);
    kill(v->engine, SIGTERM);
    waitpid(v->engine, &status, 0);
    testbed_free(v->tb);
}

static void assert_engine_lives(const Victim *v)
{
    int status;

    if (waitpid(v->engine, &status, WNOHANG))
        g_error("the engine ended with status 0x%x", status);
}

/* The answer's type. The guest's memory for it is used again. */
static uint32_t send_command(const Victim *v, const void *req, size_t size)
{
    Guest *guest = &v->tb->guest;
    size_t mark = guest->ram_used;
    GuestQueue *q = &guest->queue[CONTROL];
    struct virtio_gpu_ctrl_hdr *resp;
    int head = guest_submit(guest, CONTROL, req, size, PAGE_BYTES, (void **)&resp);

    g_assert_cmpint(head, >=, 0);
    if (guest_queue_wait(q, NULL, ANSWER_MS) != head)
        g_error("no answer to command 0x%x", *(const uint32_t *)req);
    guest->ram_used = mark;
    return resp->type;
}

static bool is_accepted(uint32_t type)
{
    return type >= VIRTIO_GPU_RESP_OK_NODATA && type < VIRTIO_GPU_RESP_ERR_UNSPEC;
}

#define assert_accepted(v, req)                                                                    \
    g_assert_cmphex(send_command(v, &(req), sizeof(req)) & 0xff00, ==,                             \
                    VIRTIO_GPU_RESP_OK_NODATA & 0xff00)
#define assert_refused(v, req)                                                                     \
    g_assert_cmphex(send_command(v, &(req), sizeof(req)), >=, VIRTIO_GPU_RESP_ERR_UNSPEC)

static struct virtio_gpu_ctx_create ctx_create(uint32_t id)
{
    return (struct virtio_gpu_ctx_create){
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = id},
        .context_init = VENUS,
    };
}

static struct virtio_gpu_ctx_destroy ctx_destroy(uint32_t id)
{
    return (struct virtio_gpu_ctx_destroy){
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = id}};
}

/* A blob of shared memory, like Venus's for its rings. */
static struct virtio_gpu_resource_create_blob blob_create(uint32_t ctx, uint32_t id, uint64_t size)
{
    return (struct virtio_gpu_resource_create_blob){
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = ctx},
        .resource_id = id,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
        .size = size,
    };
}

static struct virtio_gpu_resource_map_blob blob_map(uint32_t id, uint64_t offset)
{
    return (struct virtio_gpu_resource_map_blob){
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB}, .resource_id = id, .offset = offset};
}

static struct virtio_gpu_resource_unref make_unref(uint32_t id)
{
    return (struct virtio_gpu_resource_unref){.hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_UNREF},
                                              .resource_id = id};
}

static struct virtio_gpu_cmd_submit make_submit(uint32_t ctx, uint32_t size, uint64_t fence)
{
    return (struct virtio_gpu_cmd_submit){
        .hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D,
                .flags = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX,
                .fence_id = fence,
                .ctx_id = ctx},
        .size = size,
    };
}

/* What every guest can query at any time. */
static void assert_works(const Victim *v)
{
    struct virtio_gpu_get_capset_info info = {.hdr = {.type = VIRTIO_GPU_CMD_GET_CAPSET_INFO}};

    assert_accepted(v, info);
    assert_engine_lives(v);
}

/* Children of the engine: the render server, and below it a worker for each context. */
static unsigned count_workers(const Victim *v)
{
    g_autofree char *command_line =
        g_strdup_printf("pgrep -c -f virgl_render_server -P $(pgrep -P %d | head -1)", v->engine);
    g_autofree char *out = NULL;
    char *argv[] = {"sh", "-c", command_line, NULL};

    g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, NULL, NULL, NULL);
    return out ? (unsigned)g_ascii_strtoull(out, NULL, 10) : 0;
}

static void start_over(const Victim *v)
{
    v->tb->guest.ram_used = 0;
    guest_up(&v->tb->guest, GUEST_FEATURES);
}

static void assert_clean(const Victim *v)
{
    mdev_set_reset_timeout_ms(ANSWER_MS);
    start_over(v);
    g_assert_cmpuint(mdev_attr_u64(v->tb->uuid, "vgpu/window_published_bytes"), ==, 0);
    g_assert_cmpuint(mdev_attr_u64(v->tb->uuid, "vgpu/engine_losses"), ==, 0);
    g_assert_true(wait_until(count_workers(v) == 0, ANSWER_MS));
    assert_works(v);
}

static void test_truncated(void)
{
    Victim v = victim_new(testbed_new(TESTBED_AT_VGPU));

    for (uint32_t type = 0x100; type < 0x110; type++) {
        for (size_t size = 4; size < sizeof(struct virtio_gpu_ctrl_hdr); size += 4) {
            uint32_t words[16] = {type};

            if (is_accepted(send_command(&v, words, size)))
                g_error("command 0x%x of %zu bytes was accepted", type, size);
        }
    }
    for (uint32_t type = 0x200; type < 0x210; type++) {
        uint32_t words[16] = {type};

        if (is_accepted(send_command(&v, words, sizeof(struct virtio_gpu_ctrl_hdr) - 1)))
            g_error("command 0x%x was accepted without its header", type);
    }
    for (uint32_t type = 0x110; type < 0x10000; type = type * 3 + 1) {
        uint32_t words[64] = {type};

        if ((type < 0x200 || type > 0x20a) && (type < 0x300 || type > 0x301) &&
            is_accepted(send_command(&v, words, sizeof(words))))
            g_error("command 0x%x, which nobody knows, was accepted", type);
    }
    assert_clean(&v);
    victim_free(&v);
}

static void test_ids(void)
{
    static const uint32_t unknown[] = {0, 2, 77, 0x7fffffff, 0xffffffff};
    Victim v = victim_new(testbed_new(TESTBED_AT_VGPU));
    struct virtio_gpu_ctx_create ctx = ctx_create(1);
    struct virtio_gpu_resource_create_blob blob = blob_create(1, 1, BLOB_SIZE);
    struct virtio_gpu_ctx_resource attach = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, .ctx_id = 1}};

    for (size_t i = 0; i < G_N_ELEMENTS(unknown); i++) {
        struct virtio_gpu_ctx_destroy destroy = ctx_destroy(unknown[i]);
        struct virtio_gpu_resource_unref free_it = make_unref(unknown[i]);
        struct virtio_gpu_resource_map_blob map = blob_map(unknown[i], 0);
        struct virtio_gpu_cmd_submit submission = make_submit(unknown[i], 0, 1);

        assert_refused(&v, destroy);
        assert_refused(&v, free_it);
        assert_refused(&v, map);
        assert_refused(&v, submission);
        attach.resource_id = unknown[i];
        assert_refused(&v, attach);
    }
    ctx.hdr.ctx_id = 0;
    assert_refused(&v, ctx);
    ctx.hdr.ctx_id = 1;
    assert_accepted(&v, ctx);
    assert_refused(&v, ctx);
    assert_accepted(&v, blob);
    assert_refused(&v, blob);
    blob.resource_id = 0;
    assert_refused(&v, blob);
    attach.resource_id = 1;
    attach.hdr.ctx_id = 99;
    assert_refused(&v, attach);
    assert_clean(&v);
    victim_free(&v);
}

static void test_blobs(void)
{
    static const uint64_t sizes[] = {0,          1ull << 40, 1ull << 46,
                                     1ull << 63, UINT64_MAX, UINT64_MAX - 4095};
    static const uint64_t offsets[] = {1,          TESTBED_WINDOW, TESTBED_WINDOW - PAGE_BYTES,
                                       1ull << 40, 1ull << 63,     UINT64_MAX - 4095};
    Victim v = victim_new(testbed_new(TESTBED_AT_VGPU));
    struct virtio_gpu_ctx_create ctx = ctx_create(1);
    struct virtio_gpu_resource_create_blob a = blob_create(1, 1, BLOB_SIZE);
    struct virtio_gpu_resource_create_blob b = blob_create(1, 2, BLOB_SIZE);
    struct virtio_gpu_resource_map_blob map = blob_map(1, 8 * PAGE_BYTES);
    struct virtio_gpu_resource_unref gone = make_unref(1);
    volatile uint8_t *window = testbed_window(v.tb);

    assert_accepted(&v, ctx);
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        struct virtio_gpu_resource_create_blob blob = blob_create(1, 3, sizes[i]);

        assert_refused(&v, blob);
    }
    assert_accepted(&v, a);
    assert_accepted(&v, b);
    for (size_t i = 0; i < G_N_ELEMENTS(offsets); i++) {
        map = blob_map(1, offsets[i]);
        assert_refused(&v, map);
    }
    map = blob_map(1, 8 * PAGE_BYTES);
    assert_accepted(&v, map);
    assert_refused(&v, map);
    window[8 * PAGE_BYTES] = 0x42;
    for (uint64_t page = 5; page < 12; page++) {
        map = blob_map(2, page * PAGE_BYTES);
        assert_refused(&v, map);
    }
    g_assert_cmphex(window[8 * PAGE_BYTES], ==, 0x42);
    /* Freed while it is mapped: removed from the window at once. */
    assert_accepted(&v, gone);
    assert_window_blank(v.tb, 8 * PAGE_BYTES);
    assert_clean(&v);
    victim_free(&v);
}

static unsigned make_contexts(const Victim *v, uint32_t first, uint32_t last)
{
    unsigned made = 0;

    for (uint32_t id = first; id <= last; id++) {
        struct virtio_gpu_ctx_create ctx = ctx_create(id);

        made += is_accepted(send_command(v, &ctx, sizeof(ctx)));
    }
    return made;
}

/*
 * All the contexts that a guest can have, each with a worker: more are refused, another vGPU still
 * makes its own, a destroyed one frees its place, and a reset ends all of them. Workers are
 * processes, whose forks take nearly all of the time; so they are made once.
 */
static void test_contexts(void)
{
    Victim v = victim_new(testbed_new(TESTBED_AT_VGPU));
    Victim other = victim_new(testbed_new_on(TESTBED_GPU, TESTBED_TYPE, TESTBED_AT_VGPU));
    struct virtio_gpu_ctx_create ctx = ctx_create(1);
    gint64 begin;

    g_assert_cmpuint(make_contexts(&v, 1, MOST_CONTEXTS + 64), ==, MOST_CONTEXTS);
    assert_accepted(&other, ctx);
    assert_works(&other);
    for (uint32_t id = 1; id <= 8; id++) {
        struct virtio_gpu_ctx_destroy destroy = ctx_destroy(id);

        assert_accepted(&v, destroy);
    }
    g_assert_cmpuint(make_contexts(&v, MOST_CONTEXTS + 65, MOST_CONTEXTS + 80), ==, 8);
    begin = g_get_monotonic_time();
    assert_clean(&v);
    g_test_message("%u contexts were gone after %" G_GINT64_FORMAT " ms", MOST_CONTEXTS,
                   (g_get_monotonic_time() - begin) / 1000);
    victim_free(&other);
    victim_free(&v);
}

/* A ring full of fences; the guest does not look, resets, and starts again. */
static void test_fences(void)
{
    Victim v = victim_new(testbed_new(TESTBED_AT_VGPU));

    for (unsigned round = 0; round < 5; round++) {
        struct virtio_gpu_ctx_create ctx = ctx_create(1);
        Guest *guest = &v.tb->guest;

        assert_accepted(&v, ctx);
        for (uint64_t fence = 1; guest->queue[CONTROL].num_free >= 2; fence++) {
            struct virtio_gpu_cmd_submit submission = make_submit(1, 0, fence);
            void *resp;

            submission.hdr.ring_idx = (uint8_t)(fence % 3 ? 0 : 63);
            g_assert_cmpint(
                guest_submit(guest, CONTROL, &submission, sizeof(submission), 24, &resp), >=, 0);
        }
        start_over(&v);
    }
    assert_clean(&v);
    victim_free(&v);
}

/* Anything, in any order, with resets in between. */
static Testbed *display_vgpu(void)
{
    Testbed *tb = testbed_new(TESTBED_AT_VGPU);

    assert_ok(mdev_attr_set(tb->uuid, "vgpu/display", "1"));
    return tb;
}

static void test_random(void)
{
    static const uint32_t types[] = {
        VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
        VIRTIO_GPU_CMD_RESOURCE_UNREF,
        VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
        VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
        VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
        VIRTIO_GPU_CMD_GET_CAPSET,
        VIRTIO_GPU_CMD_CTX_CREATE,
        VIRTIO_GPU_CMD_CTX_DESTROY,
        VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE,
        VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE,
        VIRTIO_GPU_CMD_RESOURCE_CREATE_3D,
        VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D,
        VIRTIO_GPU_CMD_SUBMIT_3D,
        VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
        VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB,
        VIRTIO_GPU_CMD_GET_DISPLAY_INFO,
        VIRTIO_GPU_CMD_GET_EDID,
        VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
        VIRTIO_GPU_CMD_SET_SCANOUT,
        VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
        VIRTIO_GPU_CMD_RESOURCE_FLUSH,
        0xdead,
    };
    Victim v = victim_new(display_vgpu());
    Victim other = victim_new(testbed_new_on(TESTBED_GPU, TESTBED_TYPE, TESTBED_AT_VGPU));
    g_autoptr(GRand) rand = g_rand_new_with_seed(SEED);

    for (unsigned i = 0; i < RANDOMS; i++) {
        uint32_t words[32] = {types[g_rand_int(rand) % G_N_ELEMENTS(types)]};
        size_t size = sizeof(uint32_t) * (1 + g_rand_int(rand) % G_N_ELEMENTS(words));

        for (size_t w = 1; w < G_N_ELEMENTS(words); w++)
            words[w] = g_rand_int(rand) % 4 ? g_rand_int(rand) % 5 : g_rand_int(rand);
        words[4] = g_rand_int(rand) % 4; /* the context */
        words[1] &= VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX;
        if (words[0] == VIRTIO_GPU_CMD_CTX_CREATE)
            words[7] = VENUS;
        if (words[1] & VIRTIO_GPU_FLAG_FENCE) {
            void *resp;

            /* A fence may legitimately never be signalled. */
            guest_submit(&v.tb->guest, CONTROL, words, size, PAGE_BYTES, &resp);
        } else if (v.tb->guest.queue[CONTROL].num_free == GUEST_QUEUE_SIZE) {
            send_command(&v, words, size);
        }
        if (g_rand_int(rand) % 24 == 0 || v.tb->guest.queue[CONTROL].num_free < 8)
            start_over(&v);
    }
    assert_clean(&v);
    assert_works(&other);
    victim_free(&other);
    victim_free(&v);
}

#define WIDTH  320u
#define HEIGHT 200u

/* The guest shows a picture of its own memory: pixel i is 3 i. */
static void show_picture(Victim *v)
{
    const struct virtio_gpu_rect all = {.width = WIDTH, .height = HEIGHT};
    struct virtio_gpu_resource_create_2d create = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
                                                   .resource_id = 1,
                                                   .format = VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
                                                   .width = WIDTH,
                                                   .height = HEIGHT};
    struct {
        struct virtio_gpu_resource_attach_backing cmd;
        struct virtio_gpu_mem_entry entry;
    } attach = {.cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
                        .resource_id = 1,
                        .nr_entries = 1}};
    struct virtio_gpu_transfer_to_host_2d transfer = {
        .hdr.type = VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D, .r = all, .resource_id = 1};
    struct virtio_gpu_set_scanout show = {
        .hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT, .r = all, .resource_id = 1};
    struct virtio_gpu_resource_flush flush = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_FLUSH, .r = all, .resource_id = 1};
    uint64_t iova;
    uint32_t *pixels = guest_alloc(&v->tb->guest, 64 * PAGE_BYTES, PAGE_BYTES, &iova);

    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
        pixels[i] = i * 3;
    attach.entry = (struct virtio_gpu_mem_entry){.addr = iova, .length = 64 * PAGE_BYTES};
    assert_accepted(v, create);
    assert_accepted(v, attach);
    assert_accepted(v, transfer);
    assert_accepted(v, show);
    assert_accepted(v, flush);
}

static struct vfio_device_gfx_plane_info query_plane(const Testbed *tb)
{
    struct vfio_device_gfx_plane_info plane = {.argsz = sizeof(plane),
                                               .flags = VFIO_GFX_PLANE_TYPE_REGION};

    g_assert_cmpint(ioctl(tb->dev.fd, VFIO_DEVICE_QUERY_GFX_PLANE, &plane), ==, 0);
    return plane;
}

static bool is_picture(const volatile uint32_t *seen, uint32_t stride)
{
    for (uint32_t y = 0; y < HEIGHT; y++)
        for (uint32_t x = 0; x < WIDTH; x++)
            if ((seen[y * stride / 4 + x] & 0xffffff) != (y * WIDTH + x) * 3)
                return false;
    return true;
}

/* As a VMM sees it, soon after the flush was answered: a thread of the engine copies it. */
static void assert_picture_seen(const Testbed *tb)
{
    const struct vfio_device_gfx_plane_info plane = query_plane(tb);
    struct vfio_region_info region = {.argsz = sizeof(region), .index = plane.region_index};
    const volatile uint32_t *seen;

    g_assert_cmpuint(plane.width, ==, WIDTH);
    g_assert_cmpuint(plane.height, ==, HEIGHT);
    g_assert_cmpint(ioctl(tb->dev.fd, VFIO_DEVICE_GET_REGION_INFO, &region), ==, 0);
    seen = mmap(NULL, plane.size, PROT_READ, MAP_SHARED, tb->dev.fd, (off_t)region.offset);
    g_assert_true(seen != MAP_FAILED);
    g_assert_true(wait_until(is_picture(seen, plane.stride), GUEST_TIMEOUT_MS));
    munmap((void *)seen, plane.size);
}

/* From a guest's buffer to the VMM's picture: the driver's own fake engine cannot test that. */
static void test_picture(void)
{
    Testbed *tb = display_vgpu();
    struct virtio_gpu_ctrl_hdr info = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    struct virtio_gpu_cmd_get_edid edid = {.hdr.type = VIRTIO_GPU_CMD_GET_EDID};
    Victim v = victim_new(tb);

    assert_accepted(&v, info);
    assert_accepted(&v, edid);
    show_picture(&v);
    assert_picture_seen(tb);
    start_over(&v);
    g_assert_cmphex(query_plane(tb).drm_format, ==, 0);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
    assert_works(&v);
    victim_free(&v);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add_limit("/real-engine/truncated", test_truncated, 300);
    driver_test_add_limit("/real-engine/ids", test_ids, 300);
    driver_test_add_limit("/real-engine/blobs", test_blobs, 300);
    driver_test_add_limit("/real-engine/contexts", test_contexts, 900);
    driver_test_add_limit("/real-engine/fences", test_fences, 300);
    driver_test_add_limit("/real-engine/picture", test_picture, 300);
    driver_test_add_limit("/real-engine/random", test_random, 600);
    return driver_test_run();
}
