// SPDX-License-Identifier: MIT
/* Dispatch, sizes, capsets, contexts: what comes back to each kind of request. */
#include "fixture.h"

#include "context.h"
#include "queue.h"
#include "watch.h"

#include <errno.h>
#include <string.h>

static void test_unknown_command(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr hdr = {.type = 0x4242};

    g_assert_cmphex(fixture_ask(f, &hdr, sizeof(hdr)), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    hdr.type = VIRTIO_GPU_CMD_RESOURCE_ASSIGN_UUID;
    g_assert_cmphex(fixture_ask(f, &hdr, sizeof(hdr)), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
}

/* Every command, at every length below its own, is refused; never is more read than was sent. */
static void test_short_requests(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const struct {
        uint32_t type;
        size_t size;
    } commands[] = {
        {VIRTIO_GPU_CMD_RESOURCE_CREATE_2D, sizeof(struct virtio_gpu_resource_create_2d)},
        {VIRTIO_GPU_CMD_RESOURCE_UNREF, sizeof(struct virtio_gpu_resource_unref)},
        {VIRTIO_GPU_CMD_SET_SCANOUT, sizeof(struct virtio_gpu_set_scanout)},
        {VIRTIO_GPU_CMD_RESOURCE_FLUSH, sizeof(struct virtio_gpu_resource_flush)},
        {VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D, sizeof(struct virtio_gpu_transfer_to_host_2d)},
        {VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING, sizeof(struct virtio_gpu_resource_attach_backing)},
        {VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING, sizeof(struct virtio_gpu_resource_detach_backing)},
        {VIRTIO_GPU_CMD_GET_CAPSET_INFO, sizeof(struct virtio_gpu_get_capset_info)},
        {VIRTIO_GPU_CMD_GET_CAPSET, sizeof(struct virtio_gpu_get_capset)},
        {VIRTIO_GPU_CMD_GET_EDID, sizeof(struct virtio_gpu_cmd_get_edid)},
        {VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, sizeof(struct virtio_gpu_resource_create_blob)},
        {VIRTIO_GPU_CMD_SET_SCANOUT_BLOB, sizeof(struct virtio_gpu_set_scanout_blob)},
        {VIRTIO_GPU_CMD_CTX_CREATE, sizeof(struct virtio_gpu_ctx_create)},
        {VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, sizeof(struct virtio_gpu_ctx_resource)},
        {VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE, sizeof(struct virtio_gpu_ctx_resource)},
        {VIRTIO_GPU_CMD_SUBMIT_3D, sizeof(struct virtio_gpu_cmd_submit)},
        {VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB, sizeof(struct virtio_gpu_resource_map_blob)},
        {VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB, sizeof(struct virtio_gpu_resource_unmap_blob)},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree uint8_t *buf = g_malloc0(commands[i].size);

        memcpy(buf, &commands[i].type, sizeof(commands[i].type));
        for (size_t size = 0; size < commands[i].size; size++)
            g_assert_cmphex(fixture_ask(f, buf, size), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    }
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
}

/* A worker takes no longer message than fits into its socket. */
static void test_large_request(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autofree uint8_t *buf = g_malloc0(ENGINE_MAX_REQUEST + 1);
    struct virtio_gpu_cmd_submit cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1},
        .size = 200u << 10,
    };

    fake_virgl.signal_at_once = true; /* the worker comes to all of it */
    fixture_create_context(f, 1);
    memcpy(buf, &cmd, sizeof(cmd));
    for (int i = 0; i < 3; i++)
        g_assert_cmphex(fixture_ask(f, buf, sizeof(cmd) + cmd.size), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpint(fake_virgl.submitted, ==, (200 << 10) / 4);

    fake_virgl.submitted = -1;
    cmd.size += 4;
    memcpy(buf, &cmd, sizeof(cmd));
    g_assert_cmphex(fixture_ask(f, buf, sizeof(cmd) + cmd.size), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    cmd.size = (uint32_t)(ENGINE_MAX_REQUEST - sizeof(cmd));
    memcpy(buf, &cmd, sizeof(cmd));
    g_assert_cmphex(fixture_ask(f, buf, ENGINE_MAX_REQUEST), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(fixture_ask(f, buf, ENGINE_MAX_REQUEST + 1), ==,
                    VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    g_assert_cmpint(fake_virgl.submitted, ==, -1);
    g_assert_true(context_alive(&f->engine, 1));
}

/* An answer longer than the guest's room is cut, and the chain used all the same. */
static void test_little_room(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr hdr = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    static const size_t rooms[] = {0, 3, sizeof(hdr), 100};

    for (size_t i = 0; i < G_N_ELEMENTS(rooms); i++) {
        uint32_t token =
            fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, &hdr, sizeof(hdr), rooms[i]);

        queue_run(&f->engine, VGPU_QUEUE_CONTROL, 4);
        g_assert_nonnull(fake_driver_answer(&f->driver, token));
        g_assert_cmpuint(fake_driver_answer(&f->driver, token)->len, ==, rooms[i]);
    }
}

static void test_cursor_queue(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_update_cursor cmd = {.hdr = {.type = VIRTIO_GPU_CMD_MOVE_CURSOR}};
    uint32_t token = fake_driver_send(&f->driver, VGPU_QUEUE_CURSOR, &cmd, sizeof(cmd), 0);

    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CURSOR, 4), ==, 0);
    g_assert_cmpuint(fake_driver_answer(&f->driver, token)->len, ==, 0);
}

static void test_budget(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr hdr = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};

    for (int i = 0; i < 5; i++)
        fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, &hdr, sizeof(hdr), ANSWER_ROOM);
    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CONTROL, 4), ==, 1);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 1);
    g_assert_cmpint(queue_run(&f->engine, VGPU_QUEUE_CONTROL, 4), ==, 0);
    g_assert_cmpuint(fake_driver_waiting(&f->driver), ==, 0);
}

static void test_capsets(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_get_capset_info info = {.hdr.type = VIRTIO_GPU_CMD_GET_CAPSET_INFO};
    struct virtio_gpu_get_capset get = {.hdr.type = VIRTIO_GPU_CMD_GET_CAPSET};
    const struct virtio_gpu_resp_capset_info *info_response;
    const GByteArray *answer;
    uint32_t token = fixture_send(f, &info, sizeof(info));

    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_CAPSET_INFO);
    answer = fake_driver_answer(&f->driver, token);
    info_response = (const void *)answer->data;
    g_assert_cmpuint(answer->len, ==, sizeof(*info_response));
    g_assert_cmpuint(info_response->capset_id, ==, VIRTIO_GPU_CAPSET_VENUS);
    g_assert_cmpuint(info_response->capset_max_size, ==, 160);

    info.capset_index = 1;
    g_assert_cmphex(fixture_ask(f, &info, sizeof(info)), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);

    get.capset_id = VIRTIO_GPU_CAPSET_VENUS;
    token = fixture_send(f, &get, sizeof(get));
    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_CAPSET);
    answer = fake_driver_answer(&f->driver, token);
    g_assert_cmpuint(answer->len, ==, sizeof(struct virtio_gpu_resp_capset) + 160);
    g_assert_cmphex(answer->data[answer->len - 1], ==, 0xc5);

    get.capset_version = 9;
    g_assert_cmphex(fixture_ask(f, &get, sizeof(get)), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    get.capset_version = 0;
    get.capset_id = VIRTIO_GPU_CAPSET_VIRGL2;
    g_assert_cmphex(fixture_ask(f, &get, sizeof(get)), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
}

/* What others have a capset for: gfxstream, the display of another VM, a GPU's own driver in the
 * guest, virglrenderer's remoting of APIs (ggml-virtgpu), and numbers that nobody has. */
static void test_capsets_of_others(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    static const uint32_t ids[] = {VIRTIO_GPU_CAPSET_VIRGL, 3, 5, 6, 10, 31, 63, 255};

    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++) {
        struct virtio_gpu_get_capset get = {.hdr.type = VIRTIO_GPU_CMD_GET_CAPSET,
                                            .capset_id = ids[i]};
        struct virtio_gpu_ctx_create create = {
            .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = 1}, .context_init = ids[i]};

        g_assert_cmphex(fixture_ask(f, &get, sizeof(get)), ==,
                        VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
        g_assert_cmphex(fixture_ask(f, &create, sizeof(create)), ==,
                        VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    }
    g_assert_cmpuint(g_hash_table_size(f->engine.contexts), ==, 0);
}

static void test_context_create(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_create cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = 0},
        .context_init = VIRTIO_GPU_CAPSET_VENUS,
    };

    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    cmd.hdr.ctx_id = 1;
    cmd.nlen = sizeof(cmd.debug_name) + 1;
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    cmd.nlen = sizeof(cmd.debug_name);
    cmd.context_init = 0x100 | VIRTIO_GPU_CAPSET_VENUS;
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    cmd.context_init = VIRTIO_GPU_CAPSET_VIRGL2; /* not offered */
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    cmd.context_init = VIRTIO_GPU_CAPSET_VENUS;
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);

    fake_virgl.context_result = ENOMEM;
    cmd.hdr.ctx_id = 2;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 2*could not create*");
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    g_test_assert_expected_messages();
}

/* As Linux makes one for a frame buffer: virglrenderer hears of nothing, or the fake one would end
 * the test. */
static void test_context_without_renderer(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_create create = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = 1},
    };
    struct virtio_gpu_resource_create_2d picture = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
        .resource_id = 5,
        .format = VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
        .width = 16,
        .height = 16,
    };
    struct virtio_gpu_ctx_resource resource = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, .ctx_id = 1},
        .resource_id = 5,
    };
    struct {
        struct virtio_gpu_cmd_submit cmd;
        uint32_t dwords[1];
    } submit = {.cmd = {.hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1}, .size = 4}};
    struct virtio_gpu_ctx_destroy destroy = {.hdr.type = VIRTIO_GPU_CMD_CTX_DESTROY,
                                             .hdr.ctx_id = 1};

    g_assert_cmphex(fixture_ask(f, &create, sizeof(create)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &create, sizeof(create)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmphex(fixture_ask(f, &resource, sizeof(resource)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
    g_assert_cmphex(fixture_ask(f, &picture, sizeof(picture)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &resource, sizeof(resource)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &submit, sizeof(submit)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    g_assert_cmphex(fixture_answer_type(f, fixture_send_fence(f, 1, 0, 77)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    watch_contexts(&f->engine);
    resource.hdr.type = VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE;
    g_assert_cmphex(fixture_ask(f, &resource, sizeof(resource)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &destroy, sizeof(destroy)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &create, sizeof(create)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

static void test_context_limit(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctx_create cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = 0x80000000},
        .context_init = VIRTIO_GPU_CAPSET_VENUS,
    };
    struct virtio_gpu_ctx_destroy destroy = {.hdr.type = VIRTIO_GPU_CMD_CTX_DESTROY,
                                             .hdr.ctx_id = 5};

    for (uint32_t id = 1; id <= ENGINE_MAX_CONTEXTS; id++)
        fixture_create_context(f, id);
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
    g_assert_cmphex(fixture_ask(f, &destroy, sizeof(destroy)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &destroy, sizeof(destroy)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_assert_cmphex(fixture_ask(f, &cmd, sizeof(cmd)), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

static void test_submit_sizes(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct {
        struct virtio_gpu_cmd_submit cmd;
        uint32_t dwords[4];
    } buf = {.cmd = {.hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1}}};

    g_assert_cmphex(fixture_ask(f, &buf, sizeof(buf)), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    fixture_create_context(f, 1);

    g_assert_cmphex(fixture_ask(f, &buf, sizeof(buf)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpint(fake_virgl.submitted, ==, -1); /* nothing to submit */

    static const uint32_t bad_sizes[] = {1, 6, 20, 0xfffffffc, 0xffffffff};

    for (size_t i = 0; i < G_N_ELEMENTS(bad_sizes); i++) {
        buf.cmd.size = bad_sizes[i];
        g_assert_cmphex(fixture_ask(f, &buf, sizeof(buf)), ==,
                        VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
    }
    buf.cmd.size = 16;
    g_assert_cmphex(fixture_ask(f, &buf, sizeof(buf)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpint(fake_virgl.submitted, ==, 4);
}

/* A dead worker costs its own context and no other. */
static void test_lost_context(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct {
        struct virtio_gpu_cmd_submit cmd;
        uint32_t dwords[1];
    } buf = {.cmd = {.hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1}, .size = 4}};
    struct virtio_gpu_ctx_destroy destroy = {.hdr.type = VIRTIO_GPU_CMD_CTX_DESTROY,
                                             .hdr.ctx_id = 1};
    uint32_t fence;

    fixture_create_context(f, 1);
    fixture_create_context(f, 2);
    fence = fixture_send_fence(f, 1, 1, 77);
    g_assert_cmphex(fixture_answer_type(f, fence), ==, 0);

    fake_virgl.submit_result = -1;
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_WARNING, "*context 1*worker has ended*");
    g_assert_cmphex(fixture_ask(f, &buf, sizeof(buf)), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    g_test_assert_expected_messages();
    g_assert_cmphex(fixture_answer_type(f, fence), ==, 0);

    fake_virgl.submit_result = 0;
    g_assert_cmphex(fixture_ask(f, &buf, sizeof(buf)), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    buf.cmd.hdr.ctx_id = 2;
    g_assert_cmphex(fixture_ask(f, &buf, sizeof(buf)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_ask(f, &destroy, sizeof(destroy)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(fixture_answer_type(f, fence), ==, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
    fixture_create_context(f, 1);
}

static void test_no_displays(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    struct virtio_gpu_ctrl_hdr info = {.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO};
    struct virtio_gpu_set_scanout scanout = {.hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT};
    struct virtio_gpu_cmd_get_edid edid = {.hdr.type = VIRTIO_GPU_CMD_GET_EDID};
    uint32_t token = fixture_send(f, &info, sizeof(info));
    const struct virtio_gpu_resp_display_info *response;

    g_assert_cmphex(fixture_answer_type(f, token), ==, VIRTIO_GPU_RESP_OK_DISPLAY_INFO);
    response = (const void *)fake_driver_answer(&f->driver, token)->data;
    for (int i = 0; i < VIRTIO_GPU_MAX_SCANOUTS; i++)
        g_assert_cmpuint(response->pmodes[i].enabled, ==, 0);
    g_assert_cmphex(fixture_ask(f, &scanout, sizeof(scanout)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID);
    g_assert_cmphex(fixture_ask(f, &edid, sizeof(edid)), ==,
                    VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fixture_test("/control/unknown-command", test_unknown_command);
    fixture_test("/control/short-requests", test_short_requests);
    fixture_test("/control/large-request", test_large_request);
    fixture_test("/control/little-room", test_little_room);
    fixture_test("/control/cursor-queue", test_cursor_queue);
    fixture_test("/control/budget", test_budget);
    fixture_test("/control/capsets", test_capsets);
    fixture_test("/control/capsets-of-others", test_capsets_of_others);
    fixture_test("/control/context-create", test_context_create);
    fixture_test("/control/context-without-renderer", test_context_without_renderer);
    fixture_test("/control/context-limit", test_context_limit);
    fixture_test("/control/submit-sizes", test_submit_sizes);
    fixture_test("/control/lost-context", test_lost_context);
    fixture_test("/control/no-displays", test_no_displays);
    return g_test_run();
}
