/* SPDX-License-Identifier: MIT */
/* Queue registers, vectors and doorbells. */
#include "regs.h"

#define BASE 0x123450000ULL

static struct vgpu_regs r;

static void set_up(void)
{
    vgpu_regs_init(&r, 0, 1);
    g_assert_true(regs_negotiate(&r, OFFERED) & S_FEATURES_OK);
}

static void test_initial(void)
{
    vgpu_regs_init(&r, 0, 1);
    g_assert_cmpuint(regs_rd(&r, R_NUM_QUEUES, 2), ==, 2);
    g_assert_cmphex(regs_rd(&r, R_CONFIG_VECTOR, 2), ==, 0xffff);
    for (u16 q = 0; q < 2; q++) {
        regs_wr(&r, R_QUEUE_SELECT, q, 2);
        g_assert_cmpuint(regs_rd(&r, R_QUEUE_SELECT, 2), ==, q);
        g_assert_cmpuint(regs_rd(&r, R_QUEUE_SIZE, 2), ==, 256);
        g_assert_cmphex(regs_rd(&r, R_QUEUE_VECTOR, 2), ==, 0xffff);
        g_assert_cmpuint(regs_rd(&r, R_QUEUE_ENABLE, 2), ==, 0);
        g_assert_cmpuint(regs_rd(&r, R_QUEUE_NOTIFY_OFF, 2), ==, q);
        for (u64 reg = R_QUEUE_DESC; reg < 0x38; reg += 8)
            g_assert_cmphex(regs_rd(&r, reg, 8), ==, 0);
    }
}

static void test_no_such_queue(void)
{
    static const u16 selects[] = {2, 3, 0x8000, 0xffff};
    struct vgpu_regs before;

    set_up();
    for (guint i = 0; i < G_N_ELEMENTS(selects); i++) {
        regs_wr(&r, R_QUEUE_SELECT, selects[i], 2);
        before = r;
        g_assert_cmpuint(regs_enable_queue(&r, selects[i], 16, BASE), ==, 0);
        regs_wr(&r, R_QUEUE_VECTOR, 1, 2);
        g_assert_cmpuint(regs_rd(&r, R_QUEUE_SIZE, 2), ==, 0);
        g_assert_cmphex(regs_rd(&r, R_QUEUE_VECTOR, 2), ==, 0xffff);
        g_assert_cmphex(regs_rd(&r, R_QUEUE_DESC, 8), ==, 0);
        g_assert_cmpmem(&r, sizeof(r), &before, sizeof(before));
    }
}

static void test_enable(void)
{
    set_up();
    for (u16 q = 0; q < 2; q++) {
        const struct vgpu_vq *vq = &r.vq[q];

        g_assert_cmpuint(regs_enable_queue(&r, q, 128, BASE), ==, 1);
        g_assert_cmpuint(vq->size, ==, 128);
        g_assert_cmphex(vq->desc, ==, BASE);
        g_assert_cmphex(vq->avail, ==, BASE + 0x1000);
        g_assert_cmphex(vq->used, ==, BASE + 0x2000);
        g_assert_cmphex(regs_rd(&r, R_QUEUE_DEVICE, 8), ==, BASE + 0x2000);
        g_assert_cmphex(regs_rd(&r, R_QUEUE_DEVICE + 4, 4), ==, 1);
    }
    g_assert_false(r.vq[0].event_idx); /* features take effect with DRIVER_OK */
    regs_wr(&r, R_STATUS, S_DRIVER_OK, 1);
    g_assert_true(r.vq[0].event_idx && r.vq[1].event_idx);
    g_assert_true(r.vq[0].indirect && r.vq[1].indirect);
}

static void test_features_of_queues(void)
{
    vgpu_regs_init(&r, 0, 1);
    regs_negotiate(&r, REQUIRED | 1ULL << 29);
    regs_wr(&r, R_STATUS, S_DRIVER_OK, 1);
    g_assert_true(r.vq[0].event_idx && r.vq[1].event_idx);
    g_assert_false(r.vq[0].indirect || r.vq[1].indirect);

    vgpu_regs_init(&r, 0, 1);
    regs_negotiate(&r, REQUIRED | 1ULL << 28);
    regs_wr(&r, R_STATUS, S_DRIVER_OK, 1);
    g_assert_false(r.vq[0].event_idx || r.vq[1].event_idx);
    g_assert_true(r.vq[0].indirect && r.vq[1].indirect);
}

static void test_enable_invalid(void)
{
    set_up();
    g_assert_cmpuint(regs_enable_queue(&r, 0, 0, BASE), ==, 0);
    g_assert_cmpuint(regs_enable_queue(&r, 0, 100, BASE), ==, 0);
    g_assert_cmpuint(regs_enable_queue(&r, 0, 512, BASE), ==, 0);
    g_assert_cmpuint(regs_enable_queue(&r, 0, 64, BASE + 8), ==, 0);
    g_assert_cmpuint(regs_enable_queue(&r, 0, 64, 0ULL - 0x2000), ==, 1); /* used at 0 */
    g_assert_cmpuint(regs_enable_queue(&r, 1, 256, 0ULL - 0x800), ==, 0);
    /* Only 1 enables. */
    regs_wr(&r, R_QUEUE_SELECT, 1, 2);
    regs_wr(&r, R_QUEUE_DESC, BASE, 8);
    regs_wr(&r, R_QUEUE_ENABLE, 2, 2);
    regs_wr(&r, R_QUEUE_ENABLE, 0x0101, 2);
    g_assert_false(r.vq[1].enabled);
    regs_wr(&r, R_QUEUE_ENABLE, 1, 2);
    g_assert_true(r.vq[1].enabled);
}

static void assert_queue_fixed(u16 q)
{
    struct vgpu_regs before = r;

    regs_wr(&r, R_QUEUE_SELECT, q, 2);
    before.queue_select = q;
    regs_wr(&r, R_QUEUE_SIZE, 2, 2);
    regs_wr(&r, R_QUEUE_ENABLE, 0, 2);
    regs_wr(&r, R_QUEUE_ENABLE, 1, 2);
    for (u64 reg = R_QUEUE_DESC; reg < 0x38; reg += 4)
        regs_wr(&r, reg, 0x4000, 4);
    g_assert_cmpmem(&r, sizeof(r), &before, sizeof(before));
}

static void test_order(void)
{
    vgpu_regs_init(&r, 0, 1);
    assert_queue_fixed(0); /* before FEATURES_OK */
    set_up();
    g_assert_cmpuint(regs_enable_queue(&r, 0, 64, BASE), ==, 1);
    assert_queue_fixed(0); /* enabled */
    regs_wr(&r, R_STATUS, S_DRIVER_OK, 1);
    assert_queue_fixed(0);
    assert_queue_fixed(1); /* not enabled, and too late now */
}

static void test_addresses(void)
{
    set_up();
    for (u64 reg = R_QUEUE_DESC; reg < 0x38; reg += 8) {
        regs_wr(&r, reg, 0x1122334455667788, 8);
        g_assert_cmphex(regs_rd(&r, reg, 8), ==, 0x1122334455667788);
        regs_wr(&r, reg, 0xaabbccdd, 4);
        g_assert_cmphex(regs_rd(&r, reg, 8), ==, 0x11223344aabbccdd);
        regs_wr(&r, reg + 4, 0x99887766, 4);
        g_assert_cmphex(regs_rd(&r, reg, 8), ==, 0x99887766aabbccdd);
        /* Other widths and offsets have no effect. */
        regs_wr(&r, reg, 0, 2);
        regs_wr(&r, reg, 0, 1);
        regs_wr(&r, reg + 4, 0, 8);
        regs_wr(&r, reg + 2, 0, 4);
        regs_wr(&r, reg + 1, 0, 1);
        g_assert_cmphex(regs_rd(&r, reg, 8), ==, 0x99887766aabbccdd);
    }
    g_assert_cmphex(r.vq[0].desc, ==, r.vq[0].used);
    g_assert_cmphex(r.vq[1].desc, ==, 0);
}

static void test_vectors(void)
{
    static const u32 values[] = {0, 1, 2, 3, 4, 0x100, 0xfffe, 0xffff};

    set_up();
    for (guint i = 0; i < G_N_ELEMENTS(values); i++) {
        u32 expected = values[i] < 3 ? values[i] : 0xffff;

        regs_wr(&r, R_CONFIG_VECTOR, values[i], 2);
        g_assert_cmphex(regs_rd(&r, R_CONFIG_VECTOR, 2), ==, expected);
        regs_wr(&r, R_QUEUE_SELECT, 1, 2);
        regs_wr(&r, R_QUEUE_VECTOR, values[i], 2);
        g_assert_cmphex(regs_rd(&r, R_QUEUE_VECTOR, 2), ==, expected);
        g_assert_cmphex(r.vq[0].vector, ==, 0xffff);
    }
    /* A driver that is removed resets the vectors while the queue is running. */
    regs_wr(&r, R_QUEUE_VECTOR, 2, 2);
    regs_enable_queue(&r, 1, 64, BASE);
    regs_wr(&r, R_STATUS, S_DRIVER_OK, 1);
    g_assert_cmphex(r.vq[1].vector, ==, 2);
    regs_wr(&r, R_QUEUE_VECTOR, 0xffff, 2);
    g_assert_cmphex(r.vq[1].vector, ==, 0xffff);
}

static void test_kick(void)
{
    set_up();
    regs_enable_queue(&r, 0, 64, BASE);
    g_assert_cmpuint(regs_wr(&r, R_NOTIFY, 0, 2), ==, 0); /* before DRIVER_OK */
    regs_wr(&r, R_STATUS, S_DRIVER_OK, 1);
    g_assert_cmphex(regs_wr(&r, R_NOTIFY, 0, 2), ==, 0x100);
    g_assert_cmphex(regs_wr(&r, R_NOTIFY + 4, 1, 2), ==, 0); /* not enabled */
    g_assert_cmphex(regs_rd(&r, R_NOTIFY, 4), ==, 0);
    g_assert_cmpint(vgpu_regs_doorbell(&r, R_NOTIFY, 2), ==, 0);
    g_assert_cmpint(vgpu_regs_doorbell(&r, R_NOTIFY - 4, 2), ==, -1);
    g_assert_cmpint(vgpu_regs_doorbell(&r, 0, 2), ==, -1);
    g_assert_cmpint(vgpu_regs_doorbell(&r, UINT64_MAX - 3, 2), ==, -1);

    set_up();
    regs_enable_queue(&r, 0, 64, BASE);
    regs_enable_queue(&r, 1, 64, BASE);
    regs_wr(&r, R_STATUS, S_DRIVER_OK, 1);
    g_assert_cmphex(regs_wr(&r, R_NOTIFY + 4, 1, 2), ==, 0x200);
    g_assert_cmphex(regs_wr(&r, R_NOTIFY + 4, 0xffff, 2), ==, 0x200); /* offset matters */
    for (u64 at = 0; at < 0x1000; at++) {
        g_assert_cmphex(regs_wr(&r, R_NOTIFY + at, 0, 1), ==, 0);
        g_assert_cmphex(regs_wr(&r, R_NOTIFY + at, 0, 4), ==, 0);
        g_assert_cmphex(regs_wr(&r, R_NOTIFY + at, 0, 8), ==, 0);
        if (at != 0 && at != 4)
            g_assert_cmphex(regs_wr(&r, R_NOTIFY + at, 0, 2), ==, 0);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/regs/queues/initial", test_initial);
    g_test_add_func("/regs/queues/no-such-queue", test_no_such_queue);
    g_test_add_func("/regs/queues/enable", test_enable);
    g_test_add_func("/regs/queues/features", test_features_of_queues);
    g_test_add_func("/regs/queues/enable-invalid", test_enable_invalid);
    g_test_add_func("/regs/queues/order", test_order);
    g_test_add_func("/regs/queues/addresses", test_addresses);
    g_test_add_func("/regs/queues/vectors", test_vectors);
    g_test_add_func("/regs/queues/kick", test_kick);
    return g_test_run();
}
