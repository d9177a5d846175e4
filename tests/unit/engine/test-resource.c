// SPDX-License-Identifier: MIT
/* Resources, guest memory, the window, and what a reset leaves behind. */
#include "fixture.h"

#include "loop.h"
#include "queue.h"
#include "resource.h"

#include <errno.h>

#define PAGE ENGINE_PAGE_SIZE

struct blob_request {
    struct virtio_gpu_resource_create_blob cmd;
    struct virtio_gpu_mem_entry entries[4];
};

static struct blob_request guest_blob(uint32_t id, uint64_t size)
{
    return (struct blob_request){
        .cmd =
            {
                .hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
                .resource_id = id,
                .blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST,
                .size = size,
                .nr_entries = 1,
            },
        .entries = {{.addr = 0x10000, .length = (uint32_t)size}},
    };
}

static uint32_t unref_resource(struct fixture *f, uint32_t id)
{
    struct virtio_gpu_resource_unref cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
        .resource_id = id,
    };

    return fixture_ask(f, &cmd, sizeof(cmd));
}

static uint32_t map_blob(struct fixture *f, uint32_t id, uint64_t offset)
{
    struct virtio_gpu_resource_map_blob cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
        .resource_id = id,
        .offset = offset,
    };

    return fixture_ask(f, &cmd, sizeof(cmd));
}

static uint32_t unmap_blob(struct fixture *f, uint32_t id)
{
    struct virtio_gpu_resource_unmap_blob cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB,
        .resource_id = id,
    };

    return fixture_ask(f, &cmd, sizeof(cmd));
}

static const struct fake_range *find_published(struct fixture *f, uint64_t offset)
{
    return g_hash_table_lookup(f->driver.published, &offset);
}

static void test_ids(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct blob_request blob = guest_blob(0, PAGE);

    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    blob.cmd.resource_id = 0xffffffff;
    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    g_assert_cmphex(unref_resource(f, 1), ==, VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    g_assert_cmphex(unref_resource(f, 0xffffffff), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(unref_resource(f, 0xffffffff), ==, VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    g_assert_cmpuint(g_hash_table_size(f->driver.pins), ==, 0);
    g_assert_cmpuint(g_hash_table_size(fake_virgl.resources), ==, 0);
}

/* What only Vulkan can map would bring Vulkan into this process: a worker cannot ask for that. */
static void test_opaque(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    fixture_create_context(f, 1);
    fixture_create_blob(f, 1, 1, PAGE);
    fake_virgl.export_opaque = true;
    g_assert_cmphex(map_blob(f, 1, 0), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    g_assert_cmpuint(resource_find(&f->engine, 1)->map_users, ==, 0);

    f->engine.opaque = true; /* the driver has nothing else */
    g_assert_cmphex(map_blob(f, 1, 0), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
}

static void test_limit(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_resource_create_2d cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
        .width = 1,
        .height = 1,
    };

    for (cmd.resource_id = 1; cmd.resource_id <= ENGINE_MAX_RESOURCES; cmd.resource_id++) {
        uint32_t token =
            fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, &cmd, sizeof(cmd), ANSWER_ROOM);

        queue_run(&f->engine, VGPU_QUEUE_CONTROL, 1);
        g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_NODATA);
    }
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    g_assert_cmphex(unref_resource(f, 9), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

static void test_blob_parameters(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct blob_request good = guest_blob(1, 2 * PAGE);
    struct blob_request blob;

#define EXPECT(change, response)                                                                   \
    do {                                                                                           \
        blob = good;                                                                               \
        change;                                                                                    \
        g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==, response);                        \
    } while (0)

    EXPECT(blob.cmd.size = 0, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.cmd.size = UINT64_MAX, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.cmd.blob_flags = 8, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.cmd.blob_mem = 0, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.cmd.blob_mem = 4, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.cmd.nr_entries = 0, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.cmd.nr_entries = 5, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.cmd.nr_entries = 0xffffffff, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.entries[0].addr = 1, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.entries[0].length = 0, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.entries[0].length = PAGE + 1, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.entries[0].addr = -(uint64_t)PAGE, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.entries[0].length = PAGE, VIRTIO_GPU_RESP_ERR_UNSPEC); /* less than the blob */
    EXPECT(blob.cmd.blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(blob.cmd.blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D_GUEST,
           VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    EXPECT(f->driver.pin_result = ENOMEM, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    EXPECT(f->driver.pin_result = EFAULT, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    EXPECT(f->driver.pin_result = 0, VIRTIO_GPU_RESP_OK_NODATA);
#undef EXPECT
    g_assert_cmpuint(g_hash_table_size(f->driver.pins), ==, 1);
}

static void test_backing(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct {
        struct virtio_gpu_resource_attach_backing cmd;
        struct virtio_gpu_mem_entry entries[3];
    } attach = {
        .cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
                .resource_id = 4,
                .nr_entries = 3},
        .entries = {{.addr = 0x1000, .length = PAGE},
                    {.addr = 0x2000, .length = 2 * PAGE},
                    {.addr = 0x9000, .length = PAGE}},
    };
    struct virtio_gpu_resource_detach_backing detach = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
        .resource_id = 4,
    };
    struct virtio_gpu_resource_create_2d create = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
        .resource_id = 4,
        .format = VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
        .width = 16,
        .height = 16,
    };

    g_assert_cmphex(fixture_ask(f, &attach, sizeof(attach)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    g_assert_cmphex(fixture_ask(f, &create, sizeof(create)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &detach, sizeof(detach)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);

    g_assert_cmphex(fixture_ask(f, &attach, sizeof(attach)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(resource_find(&f->engine, 4)->backing.iov.iov_len, ==, 4 * PAGE);
    g_assert_cmphex(fixture_ask(f, &attach, sizeof(attach)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(fixture_ask(f, &detach, sizeof(detach)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(g_hash_table_size(f->driver.pins), ==, 0);

    g_assert_cmphex(fixture_ask(f, &attach, sizeof(attach)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(unref_resource(f, 4), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(g_hash_table_size(f->driver.pins), ==, 0);
}

static void test_2d(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_resource_create_2d create = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
        .resource_id = 1,
        .width = 64,
        .height = 32,
    };
    struct virtio_gpu_resource_flush flush = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_FLUSH,
        .r = {.width = 64, .height = 32},
        .resource_id = 1,
    };

    g_assert_cmphex(fixture_ask(f, &create, sizeof(create)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &flush, sizeof(flush)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    flush.r.x = 1;
    g_assert_cmphex(fixture_ask(f, &flush, sizeof(flush)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    flush.r.x = 0xffffffff;
    g_assert_cmphex(fixture_ask(f, &flush, sizeof(flush)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
}

static void test_attach_detach(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_resource cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, .ctx_id = 1},
        .resource_id = 2,
    };

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    fixture_create_context(f, 1);
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    fixture_create_blob(f, 1, 2, PAGE);
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    cmd.hdr.type = VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE;
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(fake_virgl.attached, ==, 1);
    g_assert_cmpuint(fake_virgl.detached, ==, 1);
}

/* Shared memory is accounted: nothing else stops a guest from taking all of the host's. */
static void test_shm_limit(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_resource_create_blob cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = 1},
        .resource_id = 1,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
        .size = f->driver.info.window_bytes,
    };

    fake_virgl.signal_at_once = true;
    fixture_create_context(f, 1);
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    cmd.resource_id = 2;
    cmd.size += PAGE;
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    cmd.size -= PAGE;
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    cmd.resource_id = 3;
    cmd.size = 1ull << 40;
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    g_assert_cmphex(unref_resource(f, 1), ==, VIRTIO_GPU_RESP_OK_NODATA);
    cmd.size = PAGE;
    fake_virgl.blob_result = -1;
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    g_assert_cmpuint(f->engine.shm_bytes, ==, f->driver.info.window_bytes);
}

/* It is the same memory of the host if guest memory is lent to it, too. */
static void test_shm_limit_with_backing(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct blob_request blob = guest_blob(1, f->driver.info.window_bytes);

    fixture_create_context(f, 1);
    blob.cmd.hdr.ctx_id = 1;
    blob.cmd.blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D_GUEST;
    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(f->engine.shm_bytes, ==, f->driver.info.window_bytes);
    blob.cmd.resource_id = 2;
    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    blob.cmd.resource_id = 3;
    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    blob.cmd.blob_id = 7; /* memory of the GPU, which others count */
    g_assert_cmphex(fixture_ask(f, &blob, sizeof(blob)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

static void test_map(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    const struct virtio_gpu_resp_map_info *response;
    struct virtio_gpu_resource_map_blob cmd = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
        .resource_id = 1,
        .offset = 0x3000,
    };
    uint32_t token;

    fixture_create_context(f, 1);
    fixture_create_blob(f, 1, 1, PAGE + 1);
    token = fixture_send(f, &cmd, sizeof(cmd));
    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    response = (const void *)fake_driver_answer(&f->driver, token)->data;
    g_assert_cmpuint(response->map_info, ==, VIRTIO_GPU_MAP_CACHE_WC);
    g_assert_cmpuint(find_published(f, 0x3000)->size, ==, 2 * PAGE);

    g_assert_cmphex(map_blob(f, 1, 0x9000), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(unmap_blob(f, 1), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_null(find_published(f, 0x3000));
    g_assert_cmphex(unmap_blob(f, 1), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(unmap_blob(f, 9), ==, VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);

    /* Unref of a mapped resource removes it from the window, too. */
    g_assert_cmphex(map_blob(f, 1, 0), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    g_assert_cmphex(unref_resource(f, 1), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(g_hash_table_size(f->driver.published), ==, 0);
}

static void test_map_errors(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    uint64_t window = f->driver.info.window_bytes;
    struct blob_request guest = guest_blob(2, PAGE);

    fixture_create_context(f, 1);
    fixture_create_blob(f, 1, 1, 2 * PAGE);
    guest.cmd.blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE;
    g_assert_cmphex(fixture_ask(f, &guest, sizeof(guest)), ==, VIRTIO_GPU_RESP_OK_NODATA);

    g_assert_cmphex(map_blob(f, 7, 0), ==, VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    g_assert_cmphex(map_blob(f, 2, 0), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(map_blob(f, 1, 1), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(map_blob(f, 1, window - PAGE), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(map_blob(f, 1, window), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(map_blob(f, 1, -(uint64_t)PAGE), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    fake_virgl.map_result = -EINVAL;
    g_assert_cmphex(map_blob(f, 1, 0), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    fake_virgl.map_result = 0;

    fake_virgl.map_misaligned = true;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*does not begin on a page*");
    g_assert_cmphex(map_blob(f, 1, 0), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    fake_virgl.map_misaligned = false;
    f->driver.publish_result = EEXIST;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*refused to publish*");
    g_assert_cmphex(map_blob(f, 1, 0), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    f->driver.publish_result = EACCES;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*refused to publish*");
    g_assert_cmphex(map_blob(f, 1, 0), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    g_test_assert_expected_messages();
    f->driver.publish_result = 0;

    /* More than the blob was mapped; the guest gave room for the blob. */
    fake_virgl.map_size = 16 * PAGE;
    g_assert_cmphex(map_blob(f, 1, window - 2 * PAGE), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
    g_assert_cmpuint(find_published(f, window - 2 * PAGE)->size, ==, 2 * PAGE);
}

static void test_reset(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct blob_request guest = guest_blob(2, PAGE);
    uint32_t fence;

    for (int round = 0; round < 3; round++) {
        fixture_create_context(f, 1);
        fixture_create_blob(f, 1, 1, PAGE);
        g_assert_cmphex(map_blob(f, 1, 0), ==, VIRTIO_GPU_RESP_OK_MAP_INFO);
        g_assert_cmphex(fixture_ask(f, &guest, sizeof(guest)), ==, VIRTIO_GPU_RESP_OK_NODATA);
        fence = fixture_send_fence(f, 1, 1, 1);

        fixture_reset(f);
        g_assert_null(fake_driver_answer(&f->driver, fence));
        g_assert_cmpuint(g_hash_table_size(f->engine.resources), ==, 0);
        g_assert_cmpuint(g_hash_table_size(f->engine.contexts), ==, 0);
        g_assert_cmpuint(f->engine.shm_bytes, ==, 0);
        g_assert_cmpuint(g_queue_get_length(&f->engine.fences.pending), ==, 0);
        g_assert_cmpuint(g_hash_table_size(f->driver.published), ==, 0);
    }
}

/* News of a fence that comes after its epoch reaches nobody. */
static void test_late_fence(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    fixture_create_context(f, 1);
    fixture_send_fence(f, 1, 1, 1);
    fixture_reset(f);
    fence_signal_ring(&f->engine.fences, 1, 1, 1, -1);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 1);
}

static void test_stale(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr hdr = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    struct vgpu_engine_event kick = {.events = VGPU_EVENT_KICK, .queues = 1};
    g_autoptr(GError) error = NULL;
    bool stop = false;

    fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, &hdr, sizeof(hdr), ANSWER_ROOM);
    f->driver.info.epoch++;
    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CONTROL, 4), ==, -ESTALE);
    /* Nothing was used, so there is no event of the reset, only the next kick. */
    kick.epoch = f->driver.info.epoch;
    g_assert_true(loop_handle_event(&f->engine, &kick, &stop, &error));
    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CONTROL, 4), ==, 0);
}

static void test_removed(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct vgpu_engine_event event = {.events = VGPU_EVENT_REMOVED};
    g_autoptr(GError) error = NULL;
    bool stop = false;

    g_assert_true(loop_handle_event(&f->engine, &event, &stop, &error));
    g_assert_true(stop);
}

static void test_too_late(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct vgpu_engine_event event = {.events = VGPU_EVENT_RESET, .epoch = f->engine.epoch};
    g_autoptr(GError) error = NULL;
    bool stop = false;

    f->driver.reset_result = ESTALE;
    g_assert_false(loop_handle_event(&f->engine, &event, &stop, &error));
    g_assert_nonnull(error);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fixture_test("/resource/ids", test_ids);
    fixture_test("/resource/limit", test_limit);
    fixture_test("/resource/opaque", test_opaque);
    fixture_test("/resource/blob-parameters", test_blob_parameters);
    fixture_test("/resource/backing", test_backing);
    fixture_test("/resource/2d", test_2d);
    fixture_test("/resource/attach-detach", test_attach_detach);
    fixture_test("/resource/shm-limit", test_shm_limit);
    fixture_test("/resource/shm-limit-with-backing", test_shm_limit_with_backing);
    fixture_test("/window/map", test_map);
    fixture_test("/window/errors", test_map_errors);
    fixture_test("/reset/all", test_reset);
    fixture_test("/reset/late-fence", test_late_fence);
    fixture_test("/reset/stale", test_stale);
    fixture_test("/reset/removed", test_removed);
    fixture_test("/reset/too-late", test_too_late);
    return g_test_run();
}
