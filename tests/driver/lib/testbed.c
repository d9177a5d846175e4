/* SPDX-License-Identifier: MIT */
/* The whole stack for one vGPU. */
#include "testbed.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAYLOAD_WORDS 16

typedef struct {
    struct virtio_gpu_ctrl_hdr header;
    uint32_t payload[PAYLOAD_WORDS];
} EchoMessage;

static void make_vgpu(Testbed *tb, const char *type)
{
    tb->uuid = mdev_uuid_new();
    assert_ok(mdev_create(tb->gpu, type, tb->uuid));
    g_assert_true(mdev_exists(tb->uuid));
}

static void open_vmm(Testbed *tb)
{
    assert_ok(vmm_container_open(&tb->container));
    assert_ok(vmm_vgpu_open(&tb->container, &tb->dev, tb->uuid));
    assert_ok(vmm_ram_new(&tb->ram, TESTBED_RAM_SIZE, TESTBED_RAM_IOVA));
    assert_ok(vmm_ram_map(&tb->container, &tb->ram));
    tb->request_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_ok(vmm_set_irqs(&tb->dev, VFIO_PCI_REQ_IRQ_INDEX, 0, 1, &tb->request_fd));
}

void testbed_advance(Testbed *tb, TestbedStage stage)
{
    while (tb->stage < stage) {
        tb->stage++;
        if (tb->stage == TESTBED_AT_VGPU)
            make_vgpu(tb, TESTBED_TYPE);
        else if (tb->stage == TESTBED_AT_ENGINE)
            tb->engine = engine_peer_start(tb->uuid, 0);
        else if (tb->stage == TESTBED_AT_OPEN)
            open_vmm(tb);
        else {
            guest_probe(&tb->guest, &tb->dev, &tb->ram);
            guest_up(&tb->guest, GUEST_FEATURES);
        }
    }
}

Testbed *testbed_new(TestbedStage stage)
{
    Testbed *tb = g_new0(Testbed, 1);
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);

    tb->gpu = g_strdup(TESTBED_GPU);
    assert_ok(mdev_gpu_add(tb->gpu, TESTBED_GPU_VRAM, &type, 1));
    tb->stage = TESTBED_AT_GPU;
    testbed_advance(tb, stage);
    return tb;
}

Testbed *testbed_new_on(const char *gpu, const char *type, TestbedStage stage)
{
    Testbed *tb = g_new0(Testbed, 1);

    tb->gpu = g_strdup(gpu);
    make_vgpu(tb, type);
    tb->stage = TESTBED_AT_VGPU;
    testbed_advance(tb, stage);
    return tb;
}

void testbed_close_vmm(Testbed *tb)
{
    if (tb->stage < TESTBED_AT_OPEN)
        return;
    if (tb->window)
        munmap((void *)tb->window, TESTBED_WINDOW);
    tb->window = NULL;
    if (tb->stage == TESTBED_AT_GUEST)
        guest_free(&tb->guest);
    vmm_device_close(&tb->dev);
    vmm_container_close(&tb->container);
    vmm_ram_free(&tb->ram);
    close(tb->request_fd);
    tb->stage = TESTBED_AT_ENGINE;
}

void testbed_free(Testbed *tb)
{
    testbed_close_vmm(tb);
    if (tb->engine)
        engine_peer_stop(tb->engine);
    if (tb->uuid && mdev_exists(tb->uuid))
        assert_ok(mdev_remove(tb->uuid));
    g_free(tb->uuid);
    g_free(tb->gpu);
    g_free(tb);
}

volatile uint8_t *testbed_window(Testbed *tb)
{
    if (!tb->window) {
        void *addr = vmm_region_mmap(&tb->dev, VFIO_PCI_BAR2_REGION_INDEX, 0, TESTBED_WINDOW,
                                     PROT_READ | PROT_WRITE);

        g_assert_true(addr != MAP_FAILED);
        tb->window = addr;
    }
    return tb->window;
}

void assert_window_pattern(Testbed *tb, uint64_t offset, uint64_t page)
{
    const volatile uint32_t *words = (const volatile uint32_t *)(testbed_window(tb) + offset);

    for (uint64_t i = 0; i < PAGE_BYTES / 4; i++)
        g_assert_cmphex(words[i], ==, memory_pattern(page, i));
}

bool window_is_blank(Testbed *tb, uint64_t offset)
{
    const volatile uint64_t *words = (const volatile uint64_t *)(testbed_window(tb) + offset);

    for (uint64_t i = 0; i < PAGE_BYTES / 8; i++) {
        if (words[i] != VGPU_WINDOW_BLANK)
            return false;
    }
    return true;
}

void assert_window_blank(Testbed *tb, uint64_t offset)
{
    if (!window_is_blank(tb, offset))
        g_error("window at 0x%" G_GINT64_MODIFIER "x: expected blank, got 0x%08x", offset,
                *(const volatile uint32_t *)(testbed_window(tb) + offset));
}

static void fill_request(EchoMessage *req, uint64_t fence_id)
{
    memset(req, 0, sizeof(*req));
    req->header.type = VIRTIO_GPU_CMD_SUBMIT_3D;
    req->header.flags = VIRTIO_GPU_FLAG_FENCE;
    req->header.fence_id = fence_id;
    req->header.ctx_id = 7;
    for (unsigned i = 0; i < PAYLOAD_WORDS; i++)
        req->payload[i] = memory_pattern(fence_id, i);
}

void assert_round_trip(Testbed *tb, uint64_t fence_id)
{
    EchoMessage req, resp;
    uint32_t len = 0;

    fill_request(&req, fence_id);
    assert_ok(guest_request(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), &resp, sizeof(resp),
                            &len));
    g_assert_cmpuint(len, ==, sizeof(resp));
    g_assert_cmphex(resp.header.type, ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(resp.header.fence_id, ==, fence_id);
    g_assert_cmpmem(req.payload, sizeof(req.payload), resp.payload, sizeof(resp.payload));
}

void assert_answered_with_error(Testbed *tb, uint64_t fence_id)
{
    EchoMessage req, resp;
    uint32_t len = 0;

    fill_request(&req, fence_id);
    assert_ok(guest_request(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), &resp, sizeof(resp),
                            &len));
    g_assert_cmpuint(len, ==, sizeof(resp.header));
    g_assert_cmphex(resp.header.type, ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    g_assert_cmphex(resp.header.flags, ==, VIRTIO_GPU_FLAG_FENCE);
    g_assert_cmpuint(resp.header.fence_id, ==, fence_id);
    g_assert_cmpuint(resp.header.ctx_id, ==, 7);
}
