// SPDX-License-Identifier: MIT
/*
 * Programs that come and go for as long as a VM runs: no descriptor, thread or memory of the
 * engine's is left of them, however they end.
 */
#include "fixture.h"

#include "watch.h"

#include <string.h>

/* Of <sanitizer/allocator_interface.h>, which Debian's compiler comes without. */
size_t __sanitizer_get_current_allocated_bytes(void);

#define WARM 200u
#define MANY 3000u

static unsigned int count_entries(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    unsigned int count = 0;

    while (g_dir_read_name(dir))
        count++;
    return count;
}

struct usage {
    unsigned int descriptors, threads;
    size_t bytes;
};

static struct usage measure_use(struct fixture *f)
{
    /* The test's own record of it all. */
    f->driver.last_token = 0;
    g_hash_table_remove_all(f->driver.answers);
    return (struct usage){count_entries("/proc/self/fd"), count_entries("/proc/self/task"),
                          __sanitizer_get_current_allocated_bytes()};
}

static void map_blob(struct fixture *f, uint32_t id)
{
    struct virtio_gpu_resource_map_blob cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
                                               .resource_id = id};

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
}

static void unref_blob(struct fixture *f, uint32_t id)
{
    struct virtio_gpu_resource_unref cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                            .resource_id = id};

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

static void destroy_context(struct fixture *f, uint32_t id)
{
    struct virtio_gpu_ctx_destroy cmd = {.hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = id}};

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* As Linux ends a program: its objects first. Every third one's worker dies before. */
static void live_and_die(struct fixture *f, unsigned int round)
{
    uint32_t ctx_id = 1 + round % 100;

    fixture_create_context(f, ctx_id);
    fixture_create_blob(f, ctx_id, 1, ENGINE_PAGE_SIZE);
    map_blob(f, 1);
    fixture_send_fence(f, ctx_id, 1, round + 1);
    watch_contexts(&f->engine);
    if (round % 3 == 0) {
        fake_virgl_kill_worker(ctx_id);
        watch_lost(&f->engine);
    } else {
        while (fake_virgl.fences->len)
            fake_virgl_signal(0);
    }
    unref_blob(f, 1);
    destroy_context(f, ctx_id);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
}

static void test_contexts(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct usage before, after;
    unsigned int round = 0;

    while (round < WARM)
        live_and_die(f, round++);
    before = measure_use(f);
    while (round < WARM + MANY) {
        live_and_die(f, round++);
        measure_use(f);
    }
    after = measure_use(f);
    g_assert_cmpuint(after.descriptors, ==, before.descriptors);
    g_assert_cmpuint(after.threads, ==, before.threads);
    /* Tables may have grown; a byte of each program is more. */
    g_assert_cmpuint(after.bytes, <, before.bytes + MANY);
    g_assert_cmpuint(g_hash_table_size(f->engine.contexts), ==, 0);
    g_assert_cmpuint(g_hash_table_size(f->engine.lifelines.connections), ==, 0);
}

/* A line for each worker that dies. */
static void drop_log(const char *domain G_GNUC_UNUSED, GLogLevelFlags level G_GNUC_UNUSED,
                     const char *message G_GNUC_UNUSED, void *data G_GNUC_UNUSED)
{
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_log_set_always_fatal(G_LOG_FATAL_MASK);
    g_log_set_default_handler(drop_log, NULL);
    fixture_test("/many/contexts", test_contexts);
    return g_test_run();
}
