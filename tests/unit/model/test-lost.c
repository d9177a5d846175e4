/* SPDX-License-Identifier: MIT */
/* What a guest gets from a device whose engine has died. */
#include "fake_guest.h"

/* struct virtio_gpu_ctrl_hdr: type 0, flags 4, fence_id 8, ctx_id 16, ring_idx 20. */
static const u8 request[24] = {
    0x07, 0x02, 0,    0,                /* VIRTIO_GPU_CMD_SUBMIT_3D */
    0,    0,    0,    0,                /* flags, set by each test */
    1,    2,    3,    4,    5, 6, 7, 8, /* fence_id */
    0x11, 0x12, 0x13, 0x14,             /* ctx_id */
    0x21, 0x22, 0x23, 0x24,             /* ring_idx, padding */
};

static void test_response(void)
{
    static const u8 plain[24] = {0x00, 0x12};
    static const u8 fenced[24] = {
        0x00, 0x12, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21,
    };
    u8 header[24], resp[24], expected[24];

    memcpy(header, request, 24);
    memset(resp, 0xee, sizeof(resp));
    g_assert_cmpuint(vgpu_lost_response(header, resp), ==, 24);
    g_assert_cmpmem(resp, 24, plain, 24);

    header[4] = 2; /* INFO_RING_IDX alone means nothing */
    vgpu_lost_response(header, resp);
    g_assert_cmpmem(resp, 24, plain, 24);

    header[4] = 1;
    vgpu_lost_response(header, resp);
    g_assert_cmpmem(resp, 24, fenced, 24);

    memset(header + 4, 0xff, 4); /* unknown flags are not sent back */
    memcpy(expected, fenced, 24);
    expected[4] = 3;
    vgpu_lost_response(header, resp);
    g_assert_cmpmem(resp, 24, expected, 24);
}

/* Offers a request with a fence and @resp_len bytes for its answer, at an address of its head. */
static void offer_request(fake_guest *g, u16 head, u32 resp_len)
{
    u64 data = FG_DATA + 0x100 * (u64)head;
    u64 table = FG_TABLE + 32 * (u64)head;

    memcpy(fg_at(g, data), request, 24);
    *fg_at(g, data + 4) = 1;
    *fg_at(g, data + 8) = (u8)head;
    fg_desc(g, table, 0, data, 64, resp_len ? F_NEXT : 0, 1);
    fg_desc(g, table, 1, data + 0x80, resp_len, F_WRITE, 0);
    fg_desc(g, FG_DESC, head, table, 32, F_INDIRECT, 0);
    fg_offer(g, head);
}

static int drain_queue(fake_guest *g, bool *interrupt)
{
    return vgpu_lost_drain(&g->vq, &fake_guest_ops, g, g->table, &g->chain, interrupt);
}

static void assert_answered(fake_guest *g, u16 i, u16 head, u32 len)
{
    u64 resp = FG_DATA + 0x100 * (u64)head + 0x80;

    g_assert_cmpuint(fg_used_id(g, i), ==, head);
    g_assert_cmpuint(fg_used_len(g, i), ==, len);
    g_assert_cmpuint(fg_get32(g, resp), ==, len ? 0x1200 : 0);
    g_assert_cmpuint(*fg_at(g, resp + 8), ==, len ? head : 0);
}

static void test_push(void)
{
    static const u32 rooms[] = {0, 1, 23, 24, 100};
    g_autoptr(fake_guest) g = fake_guest_new(8);
    u8 buf[64];
    bool interrupt;

    for (u16 i = 0; i < G_N_ELEMENTS(rooms); i++) {
        offer_request(g, i + 1, rooms[i]);
        g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
        g_assert_cmpint(vgpu_lost_push(&g->vq, &fake_guest_ops, g, &g->chain, &interrupt), ==, 0);
        g_assert_true(interrupt);
        assert_answered(g, i, i + 1, rooms[i] < 24 ? 0 : 24);
    }
    g_assert_cmpint(vgpu_lost_push(&g->vq, &fake_guest_ops, g, &g->chain, &interrupt), ==, -ENOENT);
}

static void test_drain(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt = true;

    g_assert_cmpint(drain_queue(g, &interrupt), ==, 0);
    g_assert_false(interrupt);

    for (u16 i = 0; i < 5; i++)
        offer_request(g, i, i == 3 ? 0 : 24);
    g_assert_cmpint(drain_queue(g, &interrupt), ==, 0);
    g_assert_true(interrupt);
    g_assert_cmpuint(fg_used_idx(g), ==, 5);
    for (u16 i = 0; i < 5; i++)
        assert_answered(g, i, i, i == 3 ? 0 : 24);
    g_assert_cmpuint(g->vq.inflight[0], ==, 0);
}

static void test_drain_event(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt;

    g->vq.event_idx = true;
    fg_set_used_event(g, 1); /* of three, the middle one */
    for (u16 i = 0; i < 3; i++)
        offer_request(g, i, 24);
    g_assert_cmpint(drain_queue(g, &interrupt), ==, 0);
    g_assert_true(interrupt);
    g_assert_cmpuint(fg_avail_event(g), ==, 3);

    offer_request(g, 0, 24);
    g_assert_cmpint(drain_queue(g, &interrupt), ==, 0);
    g_assert_false(interrupt);
    g_assert_cmpuint(fg_avail_event(g), ==, 4);
}

static void offer_again(fake_guest *g, u64 iova, size_t len)
{
    (void)len;
    if (iova == FG_USED + 2)
        offer_request(g, 0, 24);
}

/* A guest that offers as fast as it is answered must not keep us for ever. */
static void test_drain_bounded(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt;

    offer_request(g, 0, 24);
    g->on_write = offer_again;
    g_assert_cmpint(drain_queue(g, &interrupt), ==, -EAGAIN);
    g_assert_cmpuint(fg_used_idx(g), ==, 8);
    g_assert_true(interrupt);

    g->on_write = NULL;
    g_assert_cmpint(drain_queue(g, &interrupt), ==, 0);
    g_assert_cmpuint(fg_used_idx(g), ==, 9);
}

static void test_drain_broken(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt;

    offer_request(g, 0, 24);
    fg_offer(g, 200);
    g_assert_cmpint(drain_queue(g, &interrupt), ==, -EPROTO);
    g_assert_true(interrupt); /* the first one was answered */
    g_assert_true(g->vq.broken);
    g_assert_cmpuint(fg_used_idx(g), ==, 1);
    g_assert_cmpint(drain_queue(g, &interrupt), ==, -EPROTO);
    g_assert_false(interrupt);
}

static void test_drain_unreachable(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt;

    offer_request(g, 0, 24);
    fg_unmap(g, FG_USED, 0x1000);
    g_assert_cmpint(drain_queue(g, &interrupt), ==, -EPROTO);
    g_assert_false(interrupt);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lost/response", test_response);
    g_test_add_func("/lost/push", test_push);
    g_test_add_func("/lost/drain", test_drain);
    g_test_add_func("/lost/drain-event", test_drain_event);
    g_test_add_func("/lost/drain-bounded", test_drain_bounded);
    g_test_add_func("/lost/drain-broken", test_drain_broken);
    g_test_add_func("/lost/drain-unreachable", test_drain_unreachable);
    return g_test_run();
}
