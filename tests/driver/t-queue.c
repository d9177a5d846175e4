/* SPDX-License-Identifier: MIT */
/* Virtqueues: requests and responses between a guest and an engine, well-formed and not. */
#include <string.h>

#include "testbed.h"

#define CONTROL VGPU_QUEUE_CONTROL

static void test_round_trips(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    /* More than the ring and its 16-bit indices' first wrap of the ring. */
    for (unsigned i = 1; i <= 3 * GUEST_QUEUE_SIZE; i++)
        assert_round_trip(tb, i);
    g_assert_cmpint(atomic_load(&tb->engine->state->error), ==, 0);
}

static void test_cursor_queue(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_update_cursor req = {.hdr.type = VIRTIO_GPU_CMD_MOVE_CURSOR};
    struct virtio_gpu_ctrl_hdr resp = {0};
    uint32_t len;

    assert_ok(
        guest_request(&tb->guest, VGPU_QUEUE_CURSOR, &req, sizeof(req), &resp, sizeof(resp), &len));
    g_assert_cmphex(resp.type, ==, VIRTIO_GPU_RESP_OK_NODATA);
    /* Linux sends cursor commands without room for a response. */
    assert_ok(guest_request(&tb->guest, VGPU_QUEUE_CURSOR, &req, sizeof(req), NULL, 0, &len));
    g_assert_cmpuint(len, ==, 0);
    assert_round_trip(tb, 1);
}

/* Request and response scattered over @parts descriptors each, across pages. */
static void send_scattered(Testbed *tb, unsigned parts, uint32_t part_size, bool indirect)
{
    g_autofree GuestBuf *out = g_new0(GuestBuf, parts);
    g_autofree GuestBuf *in = g_new0(GuestBuf, parts);
    g_autofree uint8_t *sent = g_malloc0((size_t)parts * part_size);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    struct virtio_gpu_ctrl_hdr hdr = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 3};
    uint32_t len;
    int head;

    for (size_t i = 0; i < (size_t)parts * part_size; i++)
        sent[i] = (uint8_t)(i * 7 + i / 251);
    memcpy(sent, &hdr, sizeof(hdr));
    for (unsigned i = 0; i < parts; i++) {
        uint8_t *p = guest_alloc(&tb->guest, part_size, 1, &out[i].iova);

        memcpy(p, sent + (size_t)i * part_size, part_size);
        out[i].len = part_size;
        guest_alloc(&tb->guest, part_size, 1, &in[i].iova);
        in[i].len = part_size;
    }
    head = guest_queue_add(q, out, parts, in, parts, indirect);
    assert_ok(head);
    guest_queue_kick(q);
    g_assert_cmpint(guest_queue_wait(q, &len, GUEST_TIMEOUT_MS), ==, head);
    g_assert_cmpuint(len, ==, parts * part_size);
    for (unsigned i = 0; i < parts; i++) {
        size_t skip = i ? 0 : MIN(sizeof(hdr), part_size);

        if (i == 0 && part_size < sizeof(hdr))
            continue; /* the engine writes the header */
        g_assert_cmpmem((uint8_t *)guest_ptr(&tb->guest, in[i].iova) + skip, part_size - skip,
                        sent + (size_t)i * part_size + skip, part_size - skip);
    }
}

static void test_scattered(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    send_scattered(tb, 1, 24, false);
    send_scattered(tb, 4, 100, false);
    send_scattered(tb, 20, 1000, false);
    send_scattered(tb, 3, 9001, false);
    g_assert_cmpuint(tb->guest.queue[CONTROL].num_free, ==, GUEST_QUEUE_SIZE);
}

static void test_indirect(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    send_scattered(tb, 1, 24, true);
    send_scattered(tb, 20, 1000, true);
    send_scattered(tb, 64, 4096, true);
    g_assert_cmpuint(tb->guest.queue[CONTROL].num_free, ==, GUEST_QUEUE_SIZE);
}

/* Larger than the driver's own buffer: like SUBMIT_3D with a long command stream. */
static void test_large_request(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    send_scattered(tb, 30, 16384, true);
    assert_round_trip(tb, 1);
}

/* A large request does not cost the rings their pins: the driver keeps 32 pages besides them. */
static void test_rings_stay_pinned(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    send_scattered(tb, 30, 16384, true);
    g_assert_cmpuint(vmm_charged_kb(), >, 32 * PAGE_BYTES / 1024);
}

/* A full ring of requests at once. */
static void test_full_ring(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D,
                                      .flags = VIRTIO_GPU_FLAG_FENCE};
    struct virtio_gpu_ctrl_hdr *resp[GUEST_QUEUE_SIZE];
    int by_head[GUEST_QUEUE_SIZE];

    for (unsigned round = 0; round < 3; round++) {
        unsigned n = 0;

        atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
        g_usleep(50000);
        for (unsigned i = 0; i < GUEST_QUEUE_SIZE / 2; i++, n++) {
            int head;

            req.fence_id = 1000 + i;
            head = guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req),
                                (void **)&resp[i]);
            assert_ok(head);
            by_head[head] = (int)i;
        }
        g_assert_cmpuint(q->num_free, ==, 0);
        atomic_store(&tb->engine->state->hold, 0);
        guest_queue_kick_always(q);
        while (n--) {
            int head = guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS);

            assert_ok(head);
            g_assert_cmpuint(resp[by_head[head]]->fence_id, ==, 1000u + (unsigned)by_head[head]);
        }
    }
}

/* Without EVENT_IDX and INDIRECT_DESC, too. */
static void test_plain_features(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    guest_up(&tb->guest, GUEST_FEATURES & ~(1ull << VIRTIO_RING_F_EVENT_IDX |
                                            1ull << VIRTIO_RING_F_INDIRECT_DESC));
    for (unsigned i = 1; i <= 2 * GUEST_QUEUE_SIZE; i++)
        assert_round_trip(tb, i);
    send_scattered(tb, 10, 500, false);
}

/* Whether the last kick arrives: EVENT_IDX races lose exactly one of many. */
static void test_many_small(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    GuestQueue *q = &tb->guest.queue[CONTROL];
    GuestBuf out = {.len = sizeof(req)}, in = {.len = sizeof(req)};
    unsigned added = 0, taken = 0;

    memcpy(guest_alloc(&tb->guest, sizeof(req), 16, &out.iova), &req, sizeof(req));
    guest_alloc(&tb->guest, sizeof(req), 16, &in.iova);
    while (taken < 3000) {
        if (added < 3000 && guest_queue_add(q, &out, 1, &in, 1, false) >= 0) {
            added++;
            guest_queue_kick(q);
        }
        if (q->num_free < 2)
            g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
        else if (added == 3000)
            g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
        else if (guest_queue_take(q, NULL) < 0)
            continue;
        taken++;
    }
    g_assert_cmpint(atomic_load(&tb->engine->state->error), ==, 0);
}

#define READ_ONLY_IOVA 0x90000000ull

/*
 * A guest with its own IOMMU maps each request for reading only. Nothing is written there, even if
 * the guest asks for it: the chain comes back with length 0.
 */
static void test_read_only_request(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    uint8_t *area = tb->ram.mem + 8 * MIB;
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D, .fence_id = 42}, *resp;
    GuestBuf out = {READ_ONLY_IOVA, sizeof(req)};
    GuestBuf in = {TESTBED_RAM_IOVA + 9 * MIB, sizeof(req)};
    uint32_t len = 0;

    memcpy(area, &req, sizeof(req));
    assert_ok(
        vmm_dma_map(&tb->container, area, READ_ONLY_IOVA, PAGE_BYTES, VFIO_DMA_MAP_FLAG_READ));
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(guest_queue_add(q, &out, 1, &in, 1, false), >=, 0);
        guest_queue_kick(q);
        g_assert_cmpint(guest_queue_wait(q, &len, GUEST_TIMEOUT_MS), >=, 0);
        g_assert_cmpuint(len, ==, sizeof(req));
        resp = (struct virtio_gpu_ctrl_hdr *)(tb->ram.mem + 9 * MIB);
        g_assert_cmpuint(resp->fence_id, ==, 42);
    }
    in.iova = READ_ONLY_IOVA + 64;
    g_assert_cmpint(guest_queue_add(q, &out, 1, &in, 1, false), >=, 0);
    guest_queue_kick(q);
    g_assert_cmpint(guest_queue_wait(q, &len, GUEST_TIMEOUT_MS), >=, 0);
    g_assert_cmpuint(len, ==, 0);
    g_assert_cmpuint(area[64], ==, 0);
    /* Mapped again for both, it is. */
    assert_ok(vmm_dma_unmap(&tb->container, READ_ONLY_IOVA, PAGE_BYTES));
    assert_ok(vmm_dma_map(&tb->container, area, READ_ONLY_IOVA, PAGE_BYTES,
                          VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE));
    g_assert_cmpint(guest_queue_add(q, &out, 1, &in, 1, false), >=, 0);
    guest_queue_kick(q);
    g_assert_cmpint(guest_queue_wait(q, &len, GUEST_TIMEOUT_MS), >=, 0);
    g_assert_cmpuint(len, ==, sizeof(req));
    assert_round_trip(tb, 1);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/queue/round-trips", test_round_trips);
    driver_test_add("/queue/cursor-queue", test_cursor_queue);
    driver_test_add("/queue/scattered", test_scattered);
    driver_test_add("/queue/indirect", test_indirect);
    driver_test_add("/queue/large-request", test_large_request);
    driver_test_add("/queue/rings-stay-pinned", test_rings_stay_pinned);
    driver_test_add("/queue/full-ring", test_full_ring);
    driver_test_add("/queue/plain-features", test_plain_features);
    driver_test_add("/queue/many-small", test_many_small);
    driver_test_add("/queue/read-only-request", test_read_only_request);
    return driver_test_run();
}