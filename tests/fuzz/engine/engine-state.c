// SPDX-License-Identifier: MIT
/*
 * A saved VM that somebody has made up, and then a guest that goes on with it. virglrenderer must
 * never be used in a way that it does not survive (the fake one asserts), and a reset leaves
 * nothing behind.
 */
#include "fixture.h"
#include "queue.h"
#include "state.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop_log(const char *domain G_GNUC_UNUSED, GLogLevelFlags level G_GNUC_UNUSED,
                     const char *message G_GNUC_UNUSED, void *data G_GNUC_UNUSED)
{
}

int LLVMFuzzerInitialize(int *argc G_GNUC_UNUSED, char ***argv G_GNUC_UNUSED)
{
    g_log_set_default_handler(drop_log, NULL);
    return 0;
}

/* Gives everything back, whether it is there or not. */
static void give_back(struct fixture *f)
{
    for (uint32_t id = 1; id < 8; id++) {
        struct virtio_gpu_resource_unref unref = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                                  .resource_id = id};
        struct virtio_gpu_ctx_destroy destroy = {
            .hdr = {.type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = id}};

        fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, &unref, sizeof(unref), ANSWER_ROOM);
        fake_driver_send(&f->driver, VGPU_QUEUE_CONTROL, &destroy, sizeof(destroy), ANSWER_ROOM);
    }
    queue_run(&f->engine, VGPU_QUEUE_CONTROL, 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GByteArray) again = g_byte_array_new();
    struct fixture f;

    fixture_set_up(&f, NULL);
    f.driver.info.num_scanouts = f.engine.info.num_scanouts = 1;
    if (state_load(&f.engine, data, size, NULL)) {
        state_save(&f.engine, again);
        give_back(&f);
        fixture_reset(&f);
        g_assert_true(state_load(&f.engine, again->data, again->len, NULL));
    }
    fixture_tear_down(&f, NULL);
    return 0;
}
